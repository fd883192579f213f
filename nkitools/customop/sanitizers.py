"""A second run of a call under AddressSanitizer and UndefinedBehaviorSanitizer, and findings out of their reports."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
from collections.abc import Sequence

from nkitools.customop import process
from nkitools.customop.abi import MAX_PROCESSES, Call, give_room
from nkitools.customop.arguments import Arguments
from nkitools.customop.build import Built, Job, contents_of
from nkitools.customop.cache import being_built, digest, locked
from nkitools.customop.compiled_operator import CompiledOperator, Settings
from nkitools.customop.errors import BuildError
from nkitools.customop.event_context import Message
from nkitools.customop.events import finding_at
from nkitools.customop.process import MOST_TEXT
from nkitools.customop.returned_call import ASKED
from nkitools.customop.shape_call import shape_of
from nkitools.customop.symbols import Place
from nkitools.customop.toolchain import RUNTIME, SANITIZE, find_compiler, prepare, run
from nkitools.platforms import program_flags
from nkitools.processes import Child, Limits
from nkitools.rules.finding import Finding

_PROGRAM = "sanitized"
_LEAST_MIB = 512
_SLOWER = 20  # times: a sanitized kernel has so much more time
_ENVIRONMENT = {
    "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "print_stacktrace=0",
}
_ADDRESS = re.compile(
    r"ERROR: AddressSanitizer: (?P<kind>[\w-]+)(?P<report>.*?)(?=^==\d+==ABORTING|\Z)", re.DOTALL | re.M
)
_FRAME = re.compile(
    r"^\s*#\d+ 0x[0-9a-f]+ in (?P<function>.+?) (?P<file>/[^\n]*?):(?P<line>\d+)(?::\d+)?$", re.MULTILINE
)
_UNDEFINED = re.compile(r"^(?P<file>[^\n]+?):(?P<line>\d+):\d+: runtime error: (?P<what>[^\n]+)$", re.MULTILINE)
_OUTSIDE = ("buffer-overflow", "buffer-underflow", "out-of-bounds", "container-overflow")


def rerun(operator: CompiledOperator, arguments: Arguments, settings: Settings, cores: Sequence[int]) -> list[Finding]:
    """Return the sanitizers' reports on a call as findings. BuildError if the compiler has no sanitizers."""
    built = operator.library.built
    program = _program(built)
    memory = process.Memory()
    try:
        call = memory.begin(arguments.size())
        arguments.write(call, memory.buffer)
        operator.prepare(call, settings, cores)
        call.canary = 0xFF
        asked = ctypes.string_at(ctypes.addressof(call), ASKED)

        def fill(other: Call) -> None:
            ctypes.memmove(ctypes.addressof(other), asked, ASKED)

        found, wrong = shape_of(operator, fill, settings.timeout, settings.memory_limit)
        if wrong:
            return []  # the shape function refuses; the first run has said so
        call.out, call.stage, call.output_site = found.out, 2, found.output_site
        size = give_room(call)
        del call
        memory.grow(size)
        said = _said(program, memory.fd, settings)
    finally:
        os.close(memory.fd)
    return findings_of_reports(said, built.sources)


def _said(program: str, memory_fd: int, settings: Settings) -> str:
    """Run a sanitized call, and return the first and the last that it writes to stderr.

    It is ended after its time, with all the processes that it has started, and by the sanitizer beyond its memory: the
    first run has said so.
    """
    options = dict(_ENVIRONMENT)
    if settings.memory_limit:  # a sanitizer takes about as much again
        options["ASAN_OPTIONS"] += f":hard_rss_limit_mb={_LEAST_MIB + 2 * (settings.memory_limit >> 20)}"
    limits = Limits(settings.timeout * _SLOWER, together=settings.memory_limit, processes=MAX_PROCESSES)
    reads, writes = os.pipe()
    child = Child(
        [program, str(memory_fd)],
        limits,
        stdout=subprocess.DEVNULL,
        stderr=writes,
        pass_fds=(memory_fd,),
        env={**os.environ, **options},
    )
    os.close(writes)
    first, last = b"", b""
    try:
        while piece := os.read(reads, 1 << 16):  # until the guard has ended all that could write
            room = MOST_TEXT - len(first)
            first, last = first + piece[:room], (last + piece[room:])[-MOST_TEXT:]
    finally:
        child.close()
        os.close(reads)
    return (first + last).decode(errors="replace")


def _program(built: Built) -> str:
    compiler = find_compiler()
    recipe = built.recipe
    contents = contents_of((*recipe.compute, "", *recipe.shape, "", *built.sources))
    key = f"{_PROGRAM}-{digest([compiler.key, *SANITIZE, *recipe.flags, *contents])}"
    prepared = prepare(compiler, SANITIZE)
    with locked(key) as place:
        if not place.exists():
            with being_built(place) as scratch:
                job = Job(compiler, prepared, recipe, scratch, SANITIZE, named=tuple(one.name for one in built.kernels))
                units = [*job.compute_units(), (RUNTIME / "main.cpp", "")]
                job.compile_units(units)
                objects = [str(job.object_of(unit)) for unit, _ in units]
                command = [*compiler.command, *SANITIZE, *objects, str(prepared.runtime), "-o", str(scratch / _PROGRAM)]
                done = run([*command, *program_flags()])
                if done.end.status != 0:
                    raise BuildError(f"{recipe.name} does not link with sanitizers:\n{done.stderr}", done.stderr)
    return str(place / _PROGRAM)


def findings_of_reports(text: str, sources: Sequence[str]) -> list[Finding]:
    """Return the findings in what the sanitizers wrote: one for each line of the author's."""
    known = {os.path.realpath(path): path for path in sources}
    findings = [
        finding_at(place, message)
        for found in _UNDEFINED.finditer(text)
        if (place := _place(known, found["file"], found["line"], "")) is not None
        for message in [_undefined(found["what"])]
    ]
    for found in _ADDRESS.finditer(text):
        frames = [(frame["function"], frame["file"], frame["line"]) for frame in _FRAME.finditer(found["report"])]
        places = [place for name, file, line in frames if (place := _place(known, file, line, name)) is not None]
        if places:
            findings.append(finding_at(places[0], _address_error(found["kind"], found["report"], known)))
    return list({(finding.file, finding.line): finding for finding in findings}.values())


def _place(known: dict[str, str], file: str, line: str, function: str) -> Place | None:
    path = known.get(os.path.realpath(file))
    return Place(path, int(line), function.partition("(")[0]) if path is not None else None


def _undefined(what: str) -> Message:
    return Message("CO104" if "out of bounds" in what else "CO103", f"UndefinedBehaviorSanitizer: {what}")


def _address_error(kind: str, report: str, known: dict[str, str]) -> Message:
    what = re.search(r"^(READ|WRITE) of size (\d+)", report, re.MULTILINE)
    access = f": a {what[1].lower()} of {what[2]} bytes" if what is not None else ""
    where = re.search(
        r"is located (\d+ bytes (?:after|before|inside of|to the (?:right|left) of) \d+-byte region)", report
    )
    region = f", {where[1].replace('to the right of', 'after').replace('to the left of', 'before')}" if where else ""
    born = re.search(r"allocated by thread.*", report, re.DOTALL)
    if born is not None:
        lines = [f["line"] for f in _FRAME.finditer(born[0]) if os.path.realpath(f["file"]) in known]
        region += f" (allocated in line {lines[0]})" if lines else ""
    rule = "CO104" if any(part in kind for part in _OUTSIDE) else "CO103"
    return Message(rule, f"AddressSanitizer: {kind}{access}{region}")


def merged(known: list[Finding], found: list[Finding]) -> list[Finding]:
    """Return the findings of both runs, one for each cause.

    A plain crash keeps the sanitizers' sentence, any other cause that of the first run.
    """
    told = {(each.file, each.line) for each in known if each.severity == "error" and each.rule != "CO103"}
    new = [each for each in found if (each.file, each.line) not in told]
    places = {(each.file, each.line) for each in new}
    return [each for each in known if each.rule != "CO103" or (each.file, each.line) not in places] + new
