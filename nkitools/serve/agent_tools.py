"""The tools that a coding agent calls (Model Context Protocol, over stdin and stdout)."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, TextContent

from nkitools.chip.chosen_chip import resolve_chip
from nkitools.facts import __version__, options
from nkitools.facts.generations import CHIPS
from nkitools.facts.kept import forget_many
from nkitools.facts.known_faults import fault_named
from nkitools.processes import checked_seconds
from nkitools.rules.catalogue import rule_named
from nkitools.serve.bounded_answers import MOST_BYTES, bounded, compact
from nkitools.serve.child_process import Ended, call, warm
from nkitools.serve.instruction_cards import rule_as_markdown
from nkitools.serve.instruction_search import search
from nkitools.serve.linted_file import linted
from nkitools.serve.plain_text import sendable
from nkitools.serve.read_files import changed, contents
from nkitools.serve.repaired_file import repaired
from nkitools.serve.simulated_file import compared, estimated, reasons, simulated
from nkitools.serve.verified_file import verified

Plain = dict[str, Any]
_MOST_RUNS = 16  # that `why` can be asked about
_PROGRESS_SECONDS = 0.5
_INSTRUCTIONS = """\
nkitools judges AWS NKI kernels (nki, neuronxcc.nki) on a CPU. First lint a file, then simulate a kernel of it: findings
name rule, line, remedy and, where they follow from the source, edits (suggestions; `tried`: what became of the rule on
this run). A file says how its kernel is called: inputs = (array, ...), or pass arguments. Ask instructions for call
forms and limits, explain for a rule or a code of AWS's, why for what an element was made of, compare for what is wrong,
estimate for time. Ask verify whether a kernel is done: it is hard to fool."""


_FUNCTIONS = 3  # of a search, that are described in full


@dataclass
class Answer:
    """The answer of a tool. ``ok``: whether it could answer; ``error`` says why not."""

    ok: bool
    error: str = ""
    result: Plain = field(default_factory=dict)


# The result of a tool: an `Answer` as data, and the same as text without spaces; a refusal is an error of the protocol.
ToolResult = Annotated[CallToolResult, Answer]


def _tool_result(answer: Answer) -> CallToolResult:
    plain = asdict(answer)
    return CallToolResult(
        content=[TextContent(type="text", text=compact(plain))], structured_content=plain, is_error=not answer.ok
    )


class Refused(Exception):
    """A request for what is not allowed, or not there."""


class Workplace:
    """The files below a root, and the requests of the last simulations."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._asked: OrderedDict[str, tuple[Plain, dict[str, str]]] = OrderedDict()

    def file(self, path: str) -> Path:
        """Return a file below the root. Refused for one elsewhere, by links too, and for what is no Python file."""
        try:
            found = (self.root / path).resolve()
            is_file = found.is_file()
        except (RuntimeError, ValueError, OSError) as error:  # a link to itself, a NUL, a name that is too long
            raise Refused(f"{path} names no file: {error}") from None
        if found.is_symlink():  # from Python 3.13 on such a link is no error
            raise Refused(f"{path} names no file: it is a link that leads to itself")
        if not found.is_relative_to(self.root):
            raise Refused(f"{path} lies outside of the root of this server")
        if found.suffix != ".py" or not is_file:
            raise Refused(f"{path} is no Python file below the root of this server")
        return found

    def keep(self, request: Plain, files: list[str]) -> str:
        """Keep a request with the files that its run has read, and return its id; forget the oldest one.

        The id is the same for the same request and the same contents of the files.
        """
        before = contents({request["file"], *files})
        said = json.dumps([request, before], sort_keys=True, default=str).encode()
        name = f"run-{hashlib.sha256(said).hexdigest()[:12]}"
        self._asked[name] = request, before
        self._asked.move_to_end(name)
        while len(self._asked) > _MOST_RUNS:
            self._asked.popitem(last=False)
        return name

    def asked(self, name: str) -> Plain:
        """Return the request of an id. Refused for an unknown id, and if a file of the run has changed."""
        kept = self._asked.get(name)
        if kept is None:
            raise Refused(f"{name}: no such run; simulate returns the id, and the last {_MOST_RUNS} are kept")
        request, before = kept
        others = changed(before)
        if others:
            raise Refused(f"{name}: {', '.join(others[:3])} has changed since; simulate it again")
        return request


class _Server(MCPServer):
    """A server whose tools refuse parameters that they do not have; the protocol's package ignores these."""

    async def call_tool(self, name: str, arguments: Plain, context: Context[Any] | None = None) -> Any:
        """Call a tool by name."""
        takes = {tool.name: tool.input_schema["properties"] for tool in await self.list_tools()}.get(name, arguments)
        if unknown := arguments.keys() - takes:
            error = f"{name} takes {', '.join(takes)}, and is given {', '.join(sorted(unknown))}"
            return _tool_result(Answer(ok=False, error=sendable(error)))
        return await super().call_tool(name, arguments, context)


def make_server(root: Path) -> MCPServer:
    """Return a server of the files below ``root``."""
    server = _Server("nkitools", version=__version__, instructions=_INSTRUCTIONS, log_level="ERROR")
    workplace = Workplace(root)
    warm().start()
    _reading_tools(server, workplace)
    _tools_of_kept_runs(server, workplace)
    _tools_of_new_runs(server, workplace)
    _tools_of_edits(server, workplace)
    _tools_of_verdicts(server, workplace)
    return server


def _reading_tools(server: MCPServer, workplace: Workplace) -> None:
    @server.tool()
    async def lint(path: str, context: Context[Any], seconds: float = 60.0) -> ToolResult:
        """Check the source of the kernels in a file, without running anything: findings with line, remedy and edits."""

        async def go() -> Plain:
            request = {"file": str(workplace.file(path)), "path": path}
            found = await _called(linted, request, seconds, context)
            return {name: each for name, each in found.items() if name != "printed"}

        return await _awaited(go())

    @server.tool()
    def explain(rule: str) -> ToolResult:
        """Explain a rule by id or name (NK103, matmul-contraction-limit), or a code of AWS's compiler or runtime."""
        return _answered(lambda: _explained(rule))

    @server.tool()
    def instructions(query: str, legacy: bool = False) -> ToolResult:
        """Find functions of nki.isa and nki.language by name or by what is wanted: call form, shapes, limits, rules."""
        return _answered(lambda: _searched(query, legacy=legacy))


def _tools_of_kept_runs(server: MCPServer, workplace: Workplace) -> None:
    @server.tool()
    async def simulate(
        path: str,
        kernel: str,
        context: Context[Any],
        arguments: Plain | None = None,
        settings: Plain | None = None,
        chip: str = "",
        nki_version: str = "",
        seconds: float = 60.0,
    ) -> ToolResult:
        """Simulate a kernel of a file: findings, prints, outputs, the tiles of each line, and an id for `why`.

        arguments: by name, a number or an array {"shape": [128, 64], "dtype": "float32", "fill": "random", "seed": 0};
        without it the file's own inputs. settings: by name, a keyword of the kernel, a parameter of the file's inputs
        or a constant of the file.
        """

        async def go() -> Plain:
            request = _request(workplace, path, kernel, arguments, settings, chip=chip, nki_version=nki_version)
            found = await _called(simulated, {**request, "try_edits": True}, seconds, context)
            files = found.pop("files", [])
            return found if found.get("error") else {"run": workplace.keep(request, files), **found}

        return await _awaited(go())

    @server.tool()
    async def why(
        run: str, context: Context[Any], index: list[int], output: int | str = 0, seconds: float = 60.0
    ) -> ToolResult:
        """Say what an element of a result of a simulated run was made of, line by line back to the arguments."""

        async def go() -> Plain:
            request = workplace.asked(run) | {"output": output, "index": index}
            return await _called(reasons, request, seconds, context)

        return await _awaited(go())


def _tools_of_new_runs(server: MCPServer, workplace: Workplace) -> None:
    @server.tool()
    async def estimate(
        path: str,
        kernel: str,
        context: Context[Any],
        arguments: Plain | None = None,
        settings: Plain | None = None,
        chips: list[str] | None = None,
        nki_version: str = "",
        seconds: float = 60.0,
    ) -> ToolResult:
        """Estimate the time of a kernel on chips, such as trn1 and trn2, with what bounds it and what would help."""

        async def go() -> Plain:
            request = _request(workplace, path, kernel, arguments, settings, nki_version=nki_version) | {
                "chips": _chips(chips)
            }
            return await _called(estimated, request, seconds, context)

        return await _awaited(go())

    @server.tool()
    async def compare(
        path: str,
        kernel: str,
        against: str,
        context: Context[Any],
        arguments: Plain | None = None,
        settings: Plain | None = None,
        rtol: float | None = None,
        atol: float | None = None,
        chip: str = "",
        nki_version: str = "",
        seconds: float = 60.0,
    ) -> ToolResult:
        """Compare a kernel's outputs with those of another function of the file, a reference in NumPy say."""

        async def go() -> Plain:
            request = _request(workplace, path, kernel, arguments, settings, chip=chip, nki_version=nki_version)
            return await _called(compared, request | {"against": against, "rtol": rtol, "atol": atol}, seconds, context)

        return await _awaited(go())


def _tools_of_verdicts(server: MCPServer, workplace: Workplace) -> None:
    @server.tool()
    async def verify(
        path: str,
        kernel: str,
        context: Context[Any],
        reference: str = "",
        arguments: Plain | None = None,
        settings: Plain | None = None,
        mutates: list[str] | None = None,
        rtol: float | None = None,
        atol: float | None = None,
        max_traffic: float | None = None,
        fail_fast: bool = False,
        seed: int = 0,
        chip: str = "",
        nki_version: str = "",
        seconds: float = 60.0,
    ) -> ToolResult:
        """Judge a kernel: rows of pass, fail and unknown with what was tried and why, and how sure they are.

        reference: FILE::NAME of another file, which then says inputs and space, too; without it the file's own.
        """

        async def go() -> Plain:
            request = _request(workplace, path, kernel, arguments, settings, chip=chip, nki_version=nki_version)
            request |= {"rtol": rtol, "atol": atol, "max_traffic": max_traffic, "fail_fast": fail_fast, "seed": seed}
            request |= {"against": _against(workplace, reference), "mutates": mutates, "seconds": seconds}
            return await _called(verified, request, seconds, context)

        return await _awaited(go())


def _against(workplace: Workplace, reference: str) -> tuple[str, str] | None:
    """Return the file and the name of a reference. Refused for a file outside of the root."""
    file, separator, name = reference.rpartition("::")
    if not reference:
        return None
    if not separator:
        raise Refused(f"{reference} names no reference: write FILE::NAME")
    return str(workplace.file(file)), name


def _tools_of_edits(server: MCPServer, workplace: Workplace) -> None:
    @server.tool()
    async def repair(
        path: str,
        kernel: str,
        context: Context[Any],
        against: str = "",
        arguments: Plain | None = None,
        settings: Plain | None = None,
        chip: str = "",
        nki_version: str = "",
        seconds: float = 60.0,
    ) -> ToolResult:
        """Search for one edit of a wrong kernel after which its outputs are the reference's, and verify it.

        against: a function of the file that returns what is right; without it the file's own reference. kind: repaired,
        fits (this case alone), narrowed, doubt (the reference or the tolerance may be wrong), not found, right.
        """

        async def go() -> Plain:
            request = _request(workplace, path, kernel, arguments, settings, chip=chip, nki_version=nki_version)
            return await _called(repaired, request | {"against": against, "seconds": seconds}, seconds, context)

        return await _awaited(go())


def _request(
    workplace: Workplace, path: str, kernel: str, arguments: Plain | None, settings: Plain | None, **more: str
) -> Plain:
    if more.get("chip"):
        _chips([more["chip"]])
    if more.get("nki_version"):
        options.language(more["nki_version"])  # ValueError for an unknown one
    return {"file": str(workplace.file(path)), "kernel": kernel, "arguments": arguments, "settings": settings, **more}


def _chips(chips: list[str] | None) -> list[str]:
    unknown = [each for each in chips or () if each not in CHIPS]
    if unknown:
        raise Refused(f"{', '.join(unknown)}: no such chip; there are {', '.join(CHIPS)}")
    return chips or [resolve_chip()]


def _answered(find: Callable[[], Plain]) -> CallToolResult:
    try:
        return _tool_result(Answer(ok=True, result=sendable(bounded(find()))))
    except (Refused, ValueError, OSError) as error:
        return _tool_result(Answer(ok=False, error=sendable(str(error))))
    finally:
        forget_many()


async def _awaited(work: Any) -> CallToolResult:
    try:
        found: Plain = await work
    except (Refused, Ended, ValueError, OSError) as error:
        return _tool_result(Answer(ok=False, error=sendable(str(error))))
    found = sendable(bounded(found))
    said = found.pop("error", "") or ""
    return _tool_result(Answer(ok=not said, error=said, result=found))


async def _called(function: Callable[[Plain], Plain], request: Plain, seconds: float, context: Context[Any]) -> Plain:
    """Call a function in a process of its own, with progress each half second; a cancelled request ends the process."""
    stop = threading.Event()
    loop = asyncio.get_running_loop()
    checked_seconds(seconds)
    work = loop.run_in_executor(None, lambda: call(function, request, seconds=seconds, cancelled=stop))
    started = loop.time()
    try:
        while True:
            done, _ = await asyncio.wait({work}, timeout=_PROGRESS_SECONDS)
            if done:
                return work.result()
            await context.report_progress(round(loop.time() - started, 1), seconds, "it runs")
    finally:
        stop.set()


def _explained(name: str) -> Plain:
    try:
        rule = rule_named(name)
    except ValueError as error:
        fault = fault_named(name)
        if fault is None:
            raise Refused(str(error)) from None
        text = {"code": fault.title, "meaning": fault.meaning, "cause": fault.cause, "write": fault.write}
        return {**text, "versions": fault.versions, "source": fault.source, "rules": list(fault.rules)}
    return {"rule": rule.id, "text": rule_as_markdown(rule.id)}


def _searched(query: str, *, legacy: bool) -> Plain:
    """Return the names of NKI that a query is about: the first ones in full, the others with one sentence."""
    functions: list[Plain] = []
    others: dict[str, str] = {}
    for each in search(query, legacy=legacy):
        full = {"name": each.name, "call": each.call, "says": each.says, "rules": each.rules, "versions": each.versions}
        if others or len(functions) == _FUNCTIONS or len(json.dumps([*functions, full])) > MOST_BYTES // 5 * 4:
            others[each.name] = each.sentence
        else:
            functions.append(full)
    return {"functions": functions, "others": others}
