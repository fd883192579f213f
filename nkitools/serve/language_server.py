"""The language server: diagnostics, hovers, remedies as code actions, the shapes of tiles as inlay hints."""

from __future__ import annotations

import asyncio
import re
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path
from pygls.workspace import TextDocument

from nkitools.edits.source import Edit, Text
from nkitools.facts import __version__
from nkitools.facts.kept import forget
from nkitools.report.findings import finding_from_plain
from nkitools.rules.catalogue import RULES
from nkitools.rules.finding import Finding
from nkitools.serve.child_process import Ended, call
from nkitools.serve.instruction_cards import as_markdown, card, rule_as_markdown
from nkitools.serve.mended_kernel import REPAIR, mended, mending_actions
from nkitools.serve.open_files import OpenFile, OpenFiles
from nkitools.serve.simulated_file import simulated
from nkitools.suggestions.site import Suggestion

_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "hint": types.DiagnosticSeverity.Hint,
}
_RULE = re.compile(r"\b(?:NK|PL|CO)\d{3}\b")
_PAUSE_SECONDS = 0.03  # changes that come together are linted once
SIMULATE = "nkitools.simulate"
EXPLAIN = "nkitools.explain"


@dataclass(frozen=True)
class Settings:
    """The settings of an editor, under ``nkitools``."""

    run_on_save: bool = False  # simulate the kernels of a file that states their inputs
    seconds: float = 20.0
    chip: str = ""


@dataclass
class _Simulated:
    """The last simulated run of a file; it holds for lines that have not changed since."""

    lines: list[str]
    findings: list[Finding] = field(default_factory=list)
    tiles: list[dict[str, Any]] = field(default_factory=list)
    costs: list[dict[str, Any]] = field(default_factory=list)
    tried: dict[tuple[str, int, str], str] = field(default_factory=dict)  # by rule, line and title of a suggestion


class Server(LanguageServer):
    """A language server with its open files."""

    def __init__(self) -> None:
        super().__init__("nkitools", __version__)
        self.files = OpenFiles()
        self.settings = Settings()
        self.simulated: dict[Path, _Simulated] = {}
        self.waiting: dict[str, asyncio.TimerHandle] = {}
        self.running: dict[str, threading.Event] = {}

    def look_at(self, uri: str) -> None:
        """Lint the text of an open document, and publish the findings with the document's version."""
        self.waiting.pop(uri, None)
        path = _path_of(uri)
        if path is None or uri not in self.workspace.text_documents:
            return
        document = self.workspace.get_text_document(uri)
        try:
            self.files.put(path, document.source)
        except ValueError as error:
            self._publish(document, [_of_settings(error)])
            return
        self.publish(uri)

    def publish(self, uri: str) -> None:
        """Publish the findings of lint, and those of the last run at lines that have not changed."""
        path, document = _path_of(uri), self.workspace.get_text_document(uri)
        found = None if path is None else self.files.get(path)
        if found is None:
            return
        every = {(each.rule, each.line): each for each in (*self._of_the_run(found), *found.findings)}
        self._publish(document, [self._diagnostic(document, found, each) for each in every.values()])

    def _of_the_run(self, file: OpenFile) -> list[Finding]:
        run = self.simulated.get(file.path)
        return [] if run is None else [each for each in run.findings if _is_unchanged(run, file, each.line)]

    def _publish(self, document: TextDocument, diagnostics: list[types.Diagnostic]) -> None:
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri=document.uri, diagnostics=diagnostics, version=document.version)
        )

    def _diagnostic(self, document: TextDocument, file: OpenFile, finding: Finding) -> types.Diagnostic:
        return types.Diagnostic(
            range=self._range(document, file, finding),
            message=f"{finding.message}{finding.more()}\n{finding.remedy}",
            severity=_SEVERITIES[finding.severity],
            code=finding.rule,
            source="nkitools",
            data={"rule": finding.rule, "line": finding.line},
        )

    def _range(self, document: TextDocument, file: OpenFile, finding: Finding) -> types.Range:
        """Return the expression that a finding is about, or its whole line."""
        source = Text(file.text)
        number = min(max(finding.line, 1), len(source.lines))
        line = source.lines[number - 1]
        node = None if finding.column is None else file.node_at(number, finding.column)
        if node is not None:
            end = node.end_lineno or number
            last = types.Position(end - 1, source.character(end, node.end_col_offset or 0))
            first = types.Position(number - 1, (finding.column or 1) - 1)
        else:
            first = types.Position(number - 1, len(line) - len(line.lstrip()))
            last = types.Position(number - 1, len(line))
        return document.position_codec.range_to_client_units(document.lines, types.Range(first, last))

    def edits(self, document: TextDocument, suggestion: Suggestion) -> list[types.TextEdit]:
        """Return the edits of a suggestion in the protocol's form."""
        return [_edit(document, each) for each in suggestion.edits]

    def simulate(self, uri: str) -> dict[str, Any]:
        """Simulate the kernels of a file that states their inputs; the next call for the file stops this one."""
        path = _path_of(uri)
        if path is None:
            return {"error": f"{uri} is no file"}
        earlier = self.running.pop(uri, None)
        if earlier is not None:
            earlier.set()
        stop = self.running[uri] = threading.Event()
        names = _kernels_of(self.files.get(path))
        lines = Text(path.read_text(encoding="utf-8", errors="replace")).lines
        shown, answers = _Simulated(lines), {}
        for name in names:
            request = {"file": str(path), "kernel": name, "chip": self.settings.chip, "try_edits": True}
            try:
                answer = call(simulated, request, seconds=self.settings.seconds, cancelled=stop)
            except (Ended, ValueError) as error:
                answer = {"error": f"{name}: {error}"}
            answers[name] = answer
            shown.findings += [finding_from_plain(each) for each in answer.get("findings", []) if _is_of(each, path)]
            shown.tried |= {
                (each["rule"], each["line"], one["title"]): f" (tried: {one['tried']})"
                for each in answer.get("findings", []) if _is_of(each, path)
                for one in each["suggestions"] if "tried" in one
            }  # fmt: skip
            shown.tiles += [each for each in answer.get("tiles", []) if _is_of(each, path)]
            shown.costs += [each for each in answer.get("costs", []) if _is_of(each, path)]
        if not stop.is_set():
            self.simulated[path.resolve()] = shown
            self.running.pop(uri, None)
        return {"kernels": answers}


def _is_of(each: dict[str, Any], path: Path) -> bool:
    return Path(each["file"]).resolve() == path.resolve()


def _is_unchanged(run: _Simulated, file: OpenFile, line: int) -> bool:
    now = Text(file.text).lines
    return 0 < line <= min(len(now), len(run.lines)) and now[line - 1] == run.lines[line - 1]


def _kernels_of(file: OpenFile | None) -> list[str]:
    """Return the names of a file's kernels if the file has ``inputs`` for them, else []."""
    module = None if file is None else file.module
    if module is None or not (module.scope.binds("inputs")):
        return []
    scope = module.scope
    return [name for name, node in scope.definitions.items() if module.is_kernel(node, scope)]


def _path_of(uri: str) -> Path | None:
    path = to_fs_path(uri)
    return Path(path) if path and path.endswith(".py") else None


def _of_settings(error: ValueError) -> types.Diagnostic:
    place = types.Position(0, 0)
    return types.Diagnostic(range=types.Range(place, place), message=str(error), source="nkitools")


def _edit(document: TextDocument, edit: Edit) -> types.TextEdit:
    source = Text(document.source)
    first = types.Position(edit.line - 1, source.character(edit.line, edit.column))
    last = types.Position(edit.end_line - 1, source.character(edit.end_line, edit.end_column))
    where = document.position_codec.range_to_client_units(document.lines, types.Range(first, last))
    return types.TextEdit(range=where, new_text=edit.text)


def make_server() -> Server:
    """Return a server that follows documents, and answers questions and commands."""
    server = Server()
    _follow_documents(server)
    _answer_questions(server)
    _run_commands(server)
    return server


def _follow_documents(server: Server) -> None:
    @server.feature(types.INITIALIZED)
    def initialized(_: types.InitializedParams) -> None:
        card("nki.isa.nc_matmul")  # imports what the first hover and the first change need

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        server.look_at(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        uri = params.text_document.uri
        earlier = server.waiting.pop(uri, None)
        if earlier is not None:
            earlier.cancel()
        server.waiting[uri] = asyncio.get_running_loop().call_later(_PAUSE_SECONDS, server.look_at, uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        path = _path_of(params.text_document.uri)
        if path is not None:
            server.files.close(path)
            server.simulated.pop(path.resolve(), None)
        forget()  # caches of files that are no longer open
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(params.text_document.uri, []))

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def saved(params: types.DidSaveTextDocumentParams) -> None:
        if server.settings.run_on_save:
            await _simulated_in_thread(server, params.text_document.uri)

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def configured(params: types.DidChangeConfigurationParams) -> None:
        server.settings = _settings_of(params.settings)


def _settings_of(said: Any) -> Settings:
    own = said.get("nkitools", said) if isinstance(said, dict) else {}
    default = Settings()
    return Settings(
        run_on_save=bool(own.get("runOnSave", default.run_on_save)),
        seconds=float(own.get("seconds", default.seconds)),
        chip=str(own.get("chip", default.chip)),
    )


async def _simulated_in_thread(server: Server, uri: str) -> dict[str, Any]:
    found = await asyncio.get_running_loop().run_in_executor(None, server.simulate, uri)
    if uri in server.workspace.text_documents:
        server.publish(uri)
        server.workspace_inlay_hint_refresh(None)
    return found


def _answer_questions(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        text = _hovered(server, params)
        return None if text is None else types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text))

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    def definition(params: types.DefinitionParams) -> types.Location | None:
        rule = _rule_at(server.workspace.get_text_document(params.text_document.uri), params.position)
        if rule is None:
            return None
        from nkitools.rules import catalogue

        start = types.Position(0, 0)
        path = Path(catalogue.__file__).parent / "examples" / rule / "rule.toml"
        return types.Location(from_fs_path(str(path)) or "", types.Range(start, start)) if path.exists() else None

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix])
    )
    def actions(params: types.CodeActionParams) -> list[types.CodeAction]:
        return list(_actions(server, params))

    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    def hints(params: types.InlayHintParams) -> list[types.InlayHint]:
        return _hints(server, params)


def _hovered(server: Server, params: types.HoverParams) -> str | None:
    document = server.workspace.get_text_document(params.text_document.uri)
    rule = _rule_at(document, params.position)
    if rule is not None:
        return rule_as_markdown(rule)
    path = _path_of(document.uri)
    file = None if path is None else server.files.get(path)
    module = None if file is None else file.module
    if file is None or module is None:
        return None
    place = document.position_codec.position_from_client_units(document.lines, params.position)
    import ast

    line, column = place.line + 1, place.character + 1
    for scope in reversed(list(module.scope.all())):
        for node in scope.nodes:
            if not isinstance(node, ast.Attribute | ast.Name) or not node.lineno == node.end_lineno == line:
                continue
            first = module.column(node)
            last = module.source.character(line, node.end_col_offset or 0)
            found = card(scope.qualified(node)) if first <= column <= last + 1 else None
            if found is not None:
                return as_markdown(found) + _costs(server.simulated.get(file.path), file, line)
    return None


def _costs(run: _Simulated | None, file: OpenFile, line: int) -> str:
    """Return the cost of a line's instructions in the last simulated run, in words; '' if the line has changed."""
    if run is None or not _is_unchanged(run, file, line):
        return ""
    return "".join(
        f"\n\nLast run: {each['name']} on {each['engine']}, {each['issued']} times, the last one "
        + (f"{each['nanoseconds']:,.0f} ns." if each["nanoseconds"] else f"{each['cycles']:,.0f} cycles.")
        for each in run.costs
        if each["line"] == line
    )


def _rule_at(document: TextDocument, position: types.Position) -> str | None:
    """Return the rule whose id stands at a position, as in a comment that ignores it; None if there is none."""
    place = document.position_codec.position_from_client_units(document.lines, position)
    line = document.lines[place.line] if place.line < len(document.lines) else ""
    found = (each for each in _RULE.finditer(line) if each.start() <= place.character <= each.end())
    return next((each.group() for each in found if each.group() in RULES), None)


def _actions(server: Server, params: types.CodeActionParams) -> Any:
    """Yield the code actions of a request: fixes, explanations of rules, and the search for an edit."""
    uri = params.text_document.uri
    path = _path_of(uri)
    file = None if path is None else server.files.get(path)
    if file is None:
        return
    document = server.workspace.get_text_document(uri)
    findings = [*server._of_the_run(file), *file.findings]
    run = server.simulated.get(file.path)
    tried = run.tried if run is not None and run.lines == Text(file.text).lines else {}
    for diagnostic in params.context.diagnostics:
        rule, line = diagnostic.code, diagnostic.range.start.line + 1
        same = [each for each in findings if each.rule == rule and each.line == line]
        for number, suggestion in enumerate(each for finding in same[:1] for each in file.suggestions(finding)):
            change = types.TextDocumentEdit(
                types.OptionalVersionedTextDocumentIdentifier(uri, document.version), server.edits(document, suggestion)
            )
            yield types.CodeAction(
                suggestion.title + tried.get((str(rule), line, suggestion.title), ""),
                kind=types.CodeActionKind.QuickFix,
                diagnostics=[diagnostic],
                is_preferred=number == 0,
                edit=types.WorkspaceEdit(document_changes=[change]),
            )
        if rule in RULES:
            title = f"Explain {rule} {RULES[str(rule)].slug}"
            yield types.CodeAction(
                title, diagnostics=[diagnostic], command=types.Command(title, EXPLAIN, arguments=[rule])
            )
    yield from mending_actions(file, uri, params.range.start.line + 1)


def _hints(server: Server, params: types.InlayHintParams) -> list[types.InlayHint]:
    """Return as inlay hints the tiles that lines wrote in the last simulated run."""
    path = _path_of(params.text_document.uri)
    file = None if path is None else server.files.get(path)
    run = None if file is None else server.simulated.get(file.path)
    if file is None or run is None:
        return []
    document = server.workspace.get_text_document(params.text_document.uri)
    lines = Text(file.text).lines
    found = []
    for each in run.tiles:
        line = each["line"] - 1
        if params.range.start.line <= line <= params.range.end.line and _is_unchanged(run, file, each["line"]):
            place = types.Position(line, len(lines[line]))
            where = document.position_codec.position_to_client_units(document.lines, place)
            shape = ", ".join(map(str, each["shape"]))
            label = f"{each['tensor']}: {each['memory']} {each['dtype']} [{shape}]"
            found.append(types.InlayHint(where, label, kind=types.InlayHintKind.Type, padding_left=True))
    return found


def _run_commands(server: Server) -> None:
    @server.command(EXPLAIN)
    def explain(rule: str) -> str:
        return rule_as_markdown(rule) if rule in RULES else f"{rule} is no rule"

    @server.command(SIMULATE)
    async def simulate(uri: str) -> dict[str, Any]:
        return await _simulated_in_thread(server, uri)

    @server.command(REPAIR)
    async def repair(uri: str, kernel: str) -> dict[str, Any]:
        return await mended(server, uri, _path_of(uri), kernel, server.settings.chip, server.settings.seconds)
