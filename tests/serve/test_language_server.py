"""The language server answers a real client over stdin and stdout."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

pytest.importorskip("pygls", reason="pip install 'nkitools[lsp]'")

from lsprotocol import types
from pygls.lsp.client import LanguageClient

from nkitools.rules.catalogue import RULES

pytestmark = pytest.mark.process
TITLE = "Contract 64 rows in each turn of a loop"
BAD = RULES["NK103"].examples[0].bad


class Client(LanguageClient):
    """A client that keeps the diagnostics of each document."""

    def __init__(self) -> None:
        super().__init__("tests", "1")
        self.diagnostics: dict[str, list[types.Diagnostic]] = {}
        self.versions: dict[str, int | None] = {}

        @self.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params: types.PublishDiagnosticsParams) -> None:
            self.diagnostics[params.uri], self.versions[params.uri] = list(params.diagnostics), params.version

        @self.feature(types.WORKSPACE_INLAY_HINT_REFRESH)
        def refreshed(_: None) -> None:
            """Ask for no hints again: the test does."""


def talk(conversation: Callable[[Client], Awaitable[None]]) -> None:
    """Start a server, say hello, hold a conversation with it, and end it as the protocol has it."""

    async def held() -> None:
        client = Client()
        await client.start_io(sys.executable, "-m", "nkitools", "lsp")
        try:
            await client.initialize_async(types.InitializeParams(capabilities=types.ClientCapabilities()))
            client.initialized(types.InitializedParams())
            await conversation(client)
            await client.shutdown_async(None)
            client.exit(None)
        except BaseException:
            client._server.kill()  # it would wait for the end of the session
            raise
        finally:
            await client.stop()

    asyncio.run(asyncio.wait_for(held(), 60))


def opened(client: Client, path: Path, text: str) -> str:
    path.write_text(text)
    uri = path.as_uri()
    item = types.TextDocumentItem(uri, "python", 1, text)
    client.text_document_did_open(types.DidOpenTextDocumentParams(item))
    return uri


async def until(found: Callable[[], object]) -> None:
    """Wait for the client to have got something."""
    while not found():
        await asyncio.sleep(0.01)


def changed(client: Client, uri: str, version: int, text: str) -> None:
    document = types.VersionedTextDocumentIdentifier(version=version, uri=uri)
    change = types.TextDocumentContentChangeWholeDocument(text)
    client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))


def applied(text: str, edits: list[types.TextEdit]) -> str:
    """Return a text after edits of the protocol, for ASCII."""
    lines = text.splitlines(keepends=True)
    starts = [sum(map(len, lines[:number])) for number in range(len(lines) + 1)]

    def offset(place: types.Position) -> int:
        return starts[place.line] + place.character

    spans = [(offset(each.range.start), offset(each.range.end), each.new_text) for each in edits]
    for start, end, new in sorted(spans, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def test_a_mistake_is_shown_explained_and_mended_while_one_types(tmp_path: Path) -> None:
    """Diagnostics carry the version; the code action's text has no finding; hovers, definitions and hints answer."""
    path = tmp_path / "kernel.py"

    async def conversation(client: Client) -> None:
        uri = opened(client, path, BAD)
        await until(lambda: client.diagnostics.get(uri))
        (found,) = client.diagnostics[uri]
        assert client.versions[uri] == 1
        line = BAD.splitlines().index(next(each for each in BAD.splitlines() if each.endswith("# NK103")))
        assert (found.code, found.range.start.line, found.severity) == ("NK103", line, types.DiagnosticSeverity.Error)
        assert found.range.start.character == 4

        document = types.TextDocumentIdentifier(uri)
        context = types.CodeActionContext([found])
        await client.workspace_execute_command_async(types.ExecuteCommandParams("nkitools.simulate", [uri]))
        actions = await client.text_document_code_action_async(types.CodeActionParams(document, found.range, context))
        mend, explain = actions
        assert explain.title == "Explain NK103 matmul-contraction-limit"
        assert (mend.title, mend.is_preferred) == (f"{TITLE} (tried: NK103 gone)", True)
        (change,) = mend.edit.document_changes
        assert change.text_document.version == 1
        text = applied(BAD, change.edits)
        changed(client, uri, 2, text)
        await until(lambda: not client.diagnostics[uri])
        said = await client.workspace_execute_command_async(types.ExecuteCommandParams("nkitools.explain", ["NK103"]))
        assert "128 rows of the Tensor Engine" in said

        place = types.Position(
            text.splitlines().index("        nisa.dma_copy(dst=stationary, src=lhs_t[start:end])"), 14
        )
        shown = await client.text_document_hover_async(types.HoverParams(document, place))
        assert "nisa.dma_copy(dst, src" in shown.contents.value
        row = next(number for number, each in enumerate(text.splitlines()) if "NK103" in each)
        at_rule = types.Position(row, text.splitlines()[row].index("NK103") + 2)
        where = await client.text_document_definition_async(types.DefinitionParams(document, at_rule))
        assert where.uri.endswith("/NK103/rule.toml")

        path.write_text(text)
        ran = await client.workspace_execute_command_async(types.ExecuteCommandParams("nkitools.simulate", [uri]))
        assert ran["kernels"]["kernel"]["findings"] == []
        every = types.Range(types.Position(0, 0), types.Position(len(text.splitlines()), 0))
        hints = await client.text_document_inlay_hint_async(types.InlayHintParams(document, every))
        assert "product: PSUM float32 [64, 512]" in [each.label for each in hints]
        shown = await client.text_document_hover_async(types.HoverParams(document, place))
        assert "Last run: dma_copy on dma, 2 times, the last one " in shown.contents.value

    talk(conversation)


WRONG = """import nki
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.maximum(nl.load(x), 2.0))
    return out


def reference(x):
    return x + 2.0


inputs = (np.arange(256, dtype=np.float32).reshape(128, 2),)
"""


def test_an_edit_that_makes_a_kernel_right_is_applied(tmp_path: Path) -> None:
    """The action at the kernel starts a search, whose edit reaches the editor and no file."""

    async def conversation(client: Client) -> None:
        sent: list[types.ApplyWorkspaceEditParams] = []

        @client.feature(types.WORKSPACE_APPLY_EDIT)
        def apply(params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
            sent.append(params)
            return types.ApplyWorkspaceEditResult(applied=True)

        path = tmp_path / "wrong.py"
        path.write_text(WRONG)
        uri = opened(client, path, WRONG)
        here = types.Range(types.Position(8, 4), types.Position(8, 4))
        asked = types.CodeActionParams(types.TextDocumentIdentifier(uri), here, types.CodeActionContext([]))
        (action,) = await client.text_document_code_action_async(asked)
        assert action.title == "Look for one edit that makes kernel right"
        command = types.ExecuteCommandParams("nkitools.repair", [uri, "kernel"])
        answer = await client.workspace_execute_command_async(command)
        assert answer["kind"] == "repaired"
        await until(lambda: sent)
        (change,) = sent[0].edit.document_changes
        assert applied(WRONG, change.edits) == WRONG.replace("nl.maximum", "nl.add")
        assert path.read_text() == WRONG

    talk(conversation)


def test_what_cannot_be_linted_or_does_not_end_ends_no_session(tmp_path: Path) -> None:
    """A file that is no Python, one with other alphabets, kernels that hang or end their process, and nonsense."""
    hanging = "import nki\n\n\n@nki.jit\ndef kernel(x):\n    while True:\n        pass\n\n\ninputs = (1.0,)\n"
    leaving = hanging.replace("    while True:\n        pass\n", "    import os\n    os._exit(3)\n")

    async def conversation(client: Client) -> None:
        uri = opened(client, tmp_path / "broken.py", "def kernel(:\n")
        await until(lambda: client.diagnostics.get(uri))
        assert [each.code for each in client.diagnostics[uri]] == ["NK601"]
        wide = BAD.replace("    nisa.nc_matmul(", "    '𝕂𝕂é'; nisa.nc_matmul(")
        other = opened(client, tmp_path / "wide.py", wide)
        await until(lambda: client.diagnostics.get(other))
        (found,) = client.diagnostics[other]
        assert found.range.start.character == 4 + len("'𝕂𝕂é'; ".encode("utf-16-le")) // 2

        client.workspace_did_change_configuration(types.DidChangeConfigurationParams({"nkitools": {"seconds": 1}}))
        for name, text, said in (("hang", hanging, "did not end within 1 s"), ("leave", leaving, "exit code 3")):
            place = opened(client, tmp_path / f"{name}.py", text)
            ran = await client.workspace_execute_command_async(types.ExecuteCommandParams("nkitools.simulate", [place]))
            assert said in ran["kernels"]["kernel"]["error"]
        nothing = await client.text_document_hover_async(
            types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(400, 3))
        )
        assert nothing is None
        changed(client, uri, 2, BAD)
        await until(lambda: [each.code for each in client.diagnostics[uri]] == ["NK103"])

    talk(conversation)
