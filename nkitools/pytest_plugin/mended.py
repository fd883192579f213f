"""The edit of a kernel that makes a failed test's outputs right, looked for within ``--nki-why-budget`` seconds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from nkitools.facts import options
from nkitools.facts.kept import Kept
from nkitools.pytest_plugin.compared_arguments import ComparedOutput
from nkitools.record.saved.encoding import as_array, leaves

if TYPE_CHECKING:
    from nkitools.chip.numerics import Array
    from nkitools.comparison.rule import Rule
    from nkitools.repair.answers import Progress
    from nkitools.why.targets import Expected
    from nkitools.why.traced_calls import Call

MOST_INSTRUCTIONS = 5_000  # of a run that is repeated
_known = Kept[bytes, list[str]](
    "what a search has said of a kernel on some arguments", 256, "a session's failing tests"
)


def mended(config: pytest.Config, found: ComparedOutput) -> list[str]:
    """Return the answer of the search for one edit; [] without a budget, and for runs that are long or cannot be
    repeated.

    A failure with the same kernel, arguments and right values is searched once in a session.
    """
    seconds = float(str(options.value("why_budget")))
    if not seconds or len(found.run.instructions) > MOST_INSTRUCTIONS:
        return []
    from nkitools.why.traced_calls import Call

    call = Call.of_run(found.run)
    if call is None:
        return []
    want, rules, expected = _right(found, call)
    key = _key(call, want)
    if key not in _known:
        _known[key] = _searched(config, call, expected, want, rules, seconds)
    return _known[key]


def _searched(
    config: pytest.Config, call: Call, expected: Expected, want: list[Array], rules: list[Rule], seconds: float
) -> list[str]:
    from nkitools.repair.answers import answer_of

    workers = 1 if hasattr(config, "workerinput") else None
    try:
        with _progress(config) as progress:
            answer = answer_of(call, expected, seconds, rules=rules, want=want, workers=workers, progress=progress)
    except Exception as error:  # a mistake in the reference must not hide the failure of the test
        return [f"repair: {type(error).__name__}: {error}"]
    lines = [] if answer.kind in ("right", "stopped") else answer.lines()
    first, *rest = [line for line in lines if not line.startswith("first wrong: output")] or [""]
    return [f"repair: {first}", *(f"  {line}" for line in rest)] if first else []


def _right(found: ComparedOutput, call: Call) -> tuple[list[Array], list[Rule], Expected]:
    """Return the right outputs, the rules by which they are compared, and the reference."""
    from nkitools.why.targets import Expected

    known = found.run.reference
    if known is not None and known.values is not None:
        want = [
            np.asarray(each) for each in map(as_array, (value for _, value in leaves(known.values))) if each is not None
        ]
        rules = [known.rule_of(place) for place in range(len(want))]
        reference = known.values if known.function is None else known.function
        return want, rules, Expected(reference, known.expect or {}, call.kwargs, known.rule)
    outputs = [as_array(value) for _, value in leaves(found.run.outputs)]
    want = [np.asarray(each) for each in outputs if each is not None]
    want[found.place] = np.asarray(found.expected).reshape(want[found.place].shape)
    return want, [found.rule] * len(want), Expected(tuple(want), {}, call.kwargs, found.rule)


def _key(call: Call, want: list[Array]) -> bytes:
    from nkitools.precision.runs import arrays_in

    digest = sha256(repr((call.name, call.launch.grid, call.launch.chip)).encode())
    digest.update(repr(getattr(call.launch.function, "__code__", call.launch.function)).encode())
    for _, (_, array) in arrays_in("", (call.args, call.kwargs, tuple(want))):
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
