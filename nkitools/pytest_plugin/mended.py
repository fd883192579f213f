"""The edit of a kernel that makes a failed test's outputs right, looked for within ``--nki-why-budget`` seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from nkitools.facts import options
from nkitools.facts.kept import Kept
from nkitools.pytest_plugin.compared_arguments import ComparedOutput, compared_outputs
from nkitools.record.saved.encoding import as_array, leaves

if TYPE_CHECKING:
    from nkitools.chip.numerics import Array
    from nkitools.comparison.rule import Rule
    from nkitools.record.run import Run
    from nkitools.repair.answers import Answer, Progress
    from nkitools.rules.finding import Finding

MOST_INSTRUCTIONS = 5_000  # of a run that is repeated


@dataclass(frozen=True)
class Said:
    """The answer of a search: its lines; of a verified edit the place, and the change."""

    lines: list[str]
    place: tuple[str, int] = ("", 0)
    change: str = ""


_known = Kept[bytes, Said]("what a search has said of a kernel on some arguments", 256, "a session's failing tests")


def mended_pallas(config: pytest.Config, failure: BaseException, runs: Sequence[Run]) -> list[str]:
    """Return what a search for one edit of a JAX function says, of the first that an assertion has found wrong.

    PL211 is about the line of the edit then. Nothing where a finding names the index map to change.
    """
    checked = [run for run in runs if getattr(run, "called", None) is not None]
    found = next((each for each in compared_outputs(failure, checked) if each.elements.count), None)
    seconds = float(str(options.value("why_budget")))
    if found is None or not seconds or any(_names_an_edit(each) for each in found.run.findings):
        return []
    from nkitools.repair.jax_function import answer_of_jax

    function, args, kwargs = found.run.called()  # type: ignore[attr-defined]  # of a CheckedRun
    want, rules, reference = _right(found)
    code = getattr(getattr(function, "__wrapped__", function), "__code__", function)
    key = _key((found.run.kernel, code, callable(reference)), (args, kwargs, tuple(want)))
    if key not in _known:
        end, workers = time.monotonic() + seconds, _workers(config)
        _known[key] = _said(
            config,
            lambda progress: answer_of_jax(
                function, (args, kwargs), reference, end, rules=rules, want=want, workers=workers, progress=progress
            ),
        )
    said = _known[key]
    found.run.repair = said.lines
    found.run.findings = [_at_edit(each, said) if each.rule == "PL211" else each for each in found.run.findings]
    return said.lines


def _at_edit(finding: Finding, said: Said) -> Finding:
    """Return a finding about the line of a verified edit; as it is where there is none."""
    file, line = said.place
    return replace(finding, file=file, line=line, function="", remedy=f"Change {said.change}.") if line else finding


def _workers(config: pytest.Config) -> int | None:
    """Return in how many processes edits are tried: one beside other workers of xdist, None for one on each core."""
    return 1 if hasattr(config, "workerinput") else None


def _names_an_edit(finding: Finding) -> bool:
    return finding.rule == "PL211" and finding.remedy.startswith("Correct ")


def mended(config: pytest.Config, found: ComparedOutput) -> list[str]:
    """Return the answer of the search for one edit; [] without a budget, and for runs that are long or cannot be
    repeated.

    A failure with the same kernel, arguments and right values is searched once in a session.
    """
    seconds = float(str(options.value("why_budget")))
    if not seconds or len(found.run.instructions) > MOST_INSTRUCTIONS:
        return []
    from nkitools.repair.answers import answer_of
    from nkitools.why.targets import Expected
    from nkitools.why.traced_calls import Call

    call = Call.of_run(found.run)
    if call is None:
        return []
    want, rules, reference = _right(found)
    known = found.run.reference
    expect, rule = (known.expect or {}, known.rule) if known is not None else ({}, found.rule)
    expected = Expected(reference, expect, call.kwargs, rule)
    workers = _workers(config)
    code = getattr(call.launch.function, "__code__", call.launch.function)
    named = call.name, call.launch.grid, call.launch.chip, code, callable(reference)
    key = _key(named, (call.args, call.kwargs, tuple(want)))
    if key not in _known:
        _known[key] = _said(
            config,
            lambda progress: answer_of(
                call, expected, seconds, rules=rules, want=want, workers=workers, progress=progress
            ),
        )
    found.run.repair = _known[key].lines
    return _known[key].lines


def _said(config: pytest.Config, search: Callable[[Progress | None], Answer]) -> Said:
    try:
        with _progress(config) as progress:
            answer = search(progress)
    except Exception as error:  # a mistake in the reference must not hide the failure of the test
        return Said([f"repair: {type(error).__name__}: {error}"])
    lines = [] if answer.kind in ("right", "stopped") else answer.lines()
    first, *rest = [line for line in lines if not line.startswith("first wrong: output")] or [""]
    lines = [f"repair: {first}", *(f"  {line}" for line in rest)] if first else []
    trial = answer.trial if answer.kind == "repaired" else None
    return Said(lines) if trial is None else Said(lines, (trial.part.file, trial.line), trial.change)


def _right(found: ComparedOutput) -> tuple[list[Array], list[Rule], Any]:
    """Return the right outputs, the rules by which they are compared, and the reference, a function where it is one."""
    known = found.run.reference
    if known is not None and known.values is not None:
        held = map(as_array, (value for _, value in leaves(known.values)))
        want = [np.asarray(each) for each in held if each is not None]
        reference = known.values if known.function is None else known.function
        return want, [known.rule_of(place) for place in range(len(want))], reference
    outputs = [as_array(value) for _, value in leaves(found.run.outputs)]
    want = [np.asarray(each) for each in outputs if each is not None]
    want[found.place] = np.asarray(found.expected).reshape(want[found.place].shape)
    return want, [found.rule] * len(want), tuple(want)


def _key(named: tuple[Any, ...], arrays: Any) -> bytes:
    from nkitools.precision.runs import arrays_in

    digest = sha256(repr(named).encode())
    for _, (_, array) in arrays_in("", arrays):
        digest.update(repr((array.shape, str(array.dtype))).encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.digest()


@contextmanager
def _progress(config: pytest.Config) -> Iterator[Progress | None]:
    """Show in a terminal how many edits were tried; a worker of xdist has no terminal."""
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not reporter.isatty or hasattr(config, "workerinput"):
        yield None
        return
    reporter.ensure_newline()
    yield lambda tried, of: reporter.rewrite(
        f"nki: looking for one edit that mends the kernel, {tried} of {of}", erase=True
    )
    reporter.rewrite("", erase=True)
