"""A code action that looks for one edit of a kernel after which its results are those of the file's `reference`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

from nkitools.serve.child_process import Ended, call
from nkitools.serve.open_files import OpenFile
from nkitools.serve.repaired_file import repaired

REPAIR = "nkitools.repair"
_SLACK = 5.0  # seconds beside those of the search, for the end of its process

Plain = dict[str, Any]


def mending_actions(file: OpenFile, uri: str, line: int) -> Iterator[types.CodeAction]:
    """Yield an action that repairs the kernel at a line, if its file has ``inputs`` and ``reference``."""
    module = file.module
    if module is None or not (module.scope.binds("inputs") and module.scope.binds("reference")):
        return
    for name, node in module.scope.definitions.items():
        if module.is_kernel(node, module.scope) and node.lineno <= line <= (node.end_lineno or 0):
            title = f"Look for one edit that makes {name} right"
            command = types.Command(title, REPAIR, arguments=[uri, name])
            yield types.CodeAction(title, kind=types.CodeActionKind.QuickFix, command=command)


async def mended(server: LanguageServer, uri: str, path: Path | None, kernel: str, chip: str, seconds: float) -> Plain:
    """Search for an edit of a kernel of a saved document; let the editor apply it, or show the answer instead."""
    document = server.workspace.get_text_document(uri)
    if path is None or not _is_saved(document, path):
        return {"error": f"{uri} is no saved file"}
    answer = await asyncio.get_running_loop().run_in_executor(None, _in_child, path, kernel, chip, seconds)
    change = _change_of(answer, document, path) if _is_saved(document, path) else None
    if change is not None:
        server.workspace_apply_edit(change)
    else:
        said = answer.get("error") or answer.get("said") or f"{kernel}: {answer.get('kind')}"
        server.window_show_message(types.ShowMessageParams(types.MessageType.Info, str(said)))
    return answer


def _is_saved(document: TextDocument, path: Path) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == document.source


def _in_child(path: Path, kernel: str, chip: str, seconds: float) -> Plain:
    request = {"file": str(path), "kernel": kernel, "chip": chip, "seconds": seconds}
    try:
        return call(repaired, request, seconds=seconds + _SLACK)
    except (Ended, ValueError) as error:
        return {"error": f"{kernel}: {error}"}


def _change_of(answer: Plain, document: TextDocument, path: Path) -> types.ApplyWorkspaceEditParams | None:
    """Return the change that an answer proposes; None unless it is verified and of this file."""
    edit = answer.get("edit")
    if not edit or answer["kind"] != "repaired" or Path(edit["file"]).resolve() != path.resolve():
        return None
    edits = []
    for each in edit["edits"]:
        ends = [types.Position(each[f"{end}line"] - 1, each[f"{end}column"] - 1) for end in ("", "end_")]
        where = document.position_codec.range_to_client_units(document.lines, types.Range(*ends))
        edits.append(types.TextEdit(range=where, new_text=each["text"]))
    identifier = types.OptionalVersionedTextDocumentIdentifier(document.uri, document.version)
    change = types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(identifier, edits)])
    return types.ApplyWorkspaceEditParams(change, label=edit["change"])
