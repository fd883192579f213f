"""The arrays that a failed assertion has compared, and the rule by which it has compared them."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from nkitools.authors_code.positions import line_at
from nkitools.comparison.compared_arrays import ComparedArrays, compared
from nkitools.comparison.rule import EXACT, Rule
from nkitools.record.saved.encoding import as_array, leaves

if TYPE_CHECKING:
    from nkitools.chip.numerics import Array
    from nkitools.record.run import Run

_PAIRS = (("actual", "desired"), ("actual", "expected"), ("x", "y"), ("a", "b"))
"""The names that functions which compare arrays have for what came out, and for what should have."""

_LIBRARIES = ("numpy.testing", "torch.testing", "nkitools.pytest_plugin.reference_check")
_NUMPY_CLOSE = {"rtol": 1e-5, "atol": 1e-8, "equal_nan": False}  # defaults of numpy.allclose, torch's too
_APPROX = {"rtol": 1e-6, "atol": 1e-12}  # defaults of pytest.approx
_TORCH = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7)}
"""Defaults of torch.testing.assert_close by dtype, of its documentation."""


@dataclass(frozen=True, eq=False)
class Pair:
    """Two arrays of one shape that were compared by a rule."""

    actual: Array
    expected: Array
    rule: Rule


def compared_pairs(traceback: TracebackType | None, *, of_library: bool = False) -> Iterator[Pair]:
    """Yield the pairs of arrays that a failed assertion compares: first in a library's frames, then in the test's.

    ``of_library``: only the library's.
    """
    frames = []
    while traceback is not None:
        frame = traceback.tb_frame
        frames.append((frame, line_at(frame.f_code, traceback.tb_lasti, traceback.tb_lineno)))
        traceback = traceback.tb_next
    of_libraries = (frame for frame, _ in frames if _module(frame).startswith(_LIBRARIES))
    library = next((frame for frame in of_libraries if _has_pair(frame.f_locals)), None)  # the outermost: it has a rule
    if library is not None:
        yield from _by_names(library.f_locals, _rule_of_library(library))
    for frame, line in () if of_library else reversed(frames):
        if not _module(frame).startswith(_LIBRARIES):
            rule = _rule_of_line(frame, line)
            yield from _by_names(frame.f_locals, rule)
            yield from _by_line(frame, line, rule)


@dataclass(frozen=True, eq=False)
class ComparedOutput:
    """An output of a run that a failed assertion has compared: its index among the outputs, and the expected value."""

    run: Run
    place: int
    output: Array
    expected: Array
    rule: Rule

    @cached_property
    def elements(self) -> ComparedArrays:
        """The two, compared by the assertion's rule."""
        return compared(self.output, self.expected, self.rule)


def compared_outputs(
    failure: BaseException, runs: Sequence[Run], *, of_library: bool = False, either_side: bool = False
) -> Iterator[ComparedOutput]:
    """Yield the outputs of runs, the last run first, that the frames of a failure compare.

    ``of_library``: see `compared_pairs`. ``either_side``: also if the output stands in the place of the expected value.
    """
    outputs = [
        (run, place, value)
        for run in reversed(runs)
        for place, (_, value) in enumerate(leaves(run.outputs))
        if isinstance(value, np.ndarray) and value.dtype.names is None
    ]
    for pair in compared_pairs(failure.__traceback__, of_library=of_library):
        sides = ((pair.actual, pair.expected), (pair.expected, pair.actual))
        for mine, other in sides if either_side else sides[:1]:
            for run, place, output in outputs:
                if _is_same(output, mine):
                    yield ComparedOutput(run, place, output, other, pair.rule)


def _is_same(result: Array, seen: Array) -> bool:
    """Return whether an array is a result, or holds the same numbers."""
    if result.shape != seen.shape or seen.dtype.names is not None:
        return False
    is_view = result.__array_interface__["data"] == seen.__array_interface__["data"]
    return is_view or compared(result, seen, EXACT).agree


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _has_pair(variables: Mapping[str, Any]) -> bool:
    return any(first in variables and second in variables for first, second in _PAIRS)


def _by_names(variables: Mapping[str, Any], rule: Rule) -> Iterator[Pair]:
    """Yield the pairs that have the names which functions that compare arrays give them."""
    for first, second in _PAIRS:
        if first in variables and second in variables:
            actual, expected = as_array(variables[first]), _array(variables[second])
            if actual is None or expected is None:
                continue
            if expected.ndim == 0:
                expected = np.broadcast_to(expected, actual.shape)
            if actual.shape == expected.shape:
                yield Pair(actual, expected, rule)


def _array(value: Any) -> Array | None:
    return np.asarray(value) if isinstance(value, (int, float)) else as_array(value)


def _by_line(frame: FrameType, line: int, rule: Rule) -> Iterator[Pair]:
    """Yield the pairs of arrays of one shape that a line names, in both orders."""
    arrays = [(name, as_array(frame.f_locals.get(name))) for name in _names(_tree(frame, line))]
    named = [array for _, array in arrays if array is not None]
    for at, first in enumerate(named):
        for second in named[at + 1 :]:
            if first.shape == second.shape:
                yield Pair(first, second, rule)
                yield Pair(second, first, rule)


def _tree(frame: FrameType, line: int) -> ast.AST | None:
    """Return the statement of a line; None if the line is only a part of one."""
    try:
        return ast.parse(linecache.getline(frame.f_code.co_filename, line).strip())
    except SyntaxError:
        return None


def _names(tree: ast.AST | None) -> list[str]:
    """Return the names in a statement, in their order."""
    nodes = () if tree is None else ast.walk(tree)
    return list(dict.fromkeys(node.id for node in nodes if isinstance(node, ast.Name)))


# --- the rule -------------------------------------------------------------------------------------------------------


def _rule_of_library(frame: FrameType) -> Rule:
    name, variables = frame.f_code.co_name, frame.f_locals
    rule = variables.get("rule")
    if isinstance(rule, Rule):
        return rule
    if name in ("assert_array_equal", "assert_equal"):
        return EXACT
    if name in ("assert_array_almost_equal", "assert_almost_equal"):
        return Rule(0.0, 1.5 * 10.0 ** -int(variables.get("decimal", 7)))  # as NumPy's documentation has it
    if name == "assert_allclose":
        return _rule(variables)
    if name == "assert_close":
        return _rule_of_torch(variables)
    return Rule()


def _rule_of_torch(variables: Mapping[str, Any]) -> Rule:
    given = _rule(variables)
    names = [str(getattr(variables.get(side), "dtype", "")).rpartition(".")[2] for side in ("actual", "expected")]
    known = [_TORCH.get(name, (0.0, 0.0)) for name in names]
    if given.is_stated:
        return given
    return Rule(max(rtol for rtol, _ in known), max(atol for _, atol in known), given.equal_nan)


def _rule(variables: Mapping[str, Any]) -> Rule:
    """Return the rule of variables that are called as in NumPy."""
    rtol, atol = (_number(variables.get(name)) for name in ("rtol", "atol"))
    return Rule(rtol, atol, variables.get("equal_nan") is not False)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


def _rule_of_line(frame: FrameType, line: int) -> Rule:
    """Return the tolerance in an author's statement; the rule by dtype if it has none."""
    tree = _tree(frame, line)
    if tree is None:
        return Rule()
    calls = {_called(node): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for name, defaults, relative, absolute in (
        ("allclose", _NUMPY_CLOSE, "rtol", "atol"),
        ("isclose", _NUMPY_CLOSE, "rtol", "atol"),
        ("approx", _APPROX, "rel", "abs"),
    ):
        if name in calls:
            given = {each.arg: _value(each.value, frame) for each in calls[name].keywords}
            stated = {"rtol": given.get(relative), "atol": given.get(absolute), "equal_nan": given.get("equal_nan")}
            return _rule({**defaults, **{key: value for key, value in stated.items() if value is not None}})
    is_equality = any(
        isinstance(op, ast.Eq) for node in ast.walk(tree) if isinstance(node, ast.Compare) for op in node.ops
    )
    return Rule(0.0, 0.0, equal_nan=False) if is_equality or "array_equal" in calls else Rule()


def _called(node: ast.Call) -> str:
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _value(node: ast.expr, frame: FrameType) -> Any:
    """Return the value of a constant or a name."""
    if isinstance(node, ast.Name):
        return frame.f_locals.get(node.id, frame.f_globals.get(node.id))
    return node.value if isinstance(node, ast.Constant) else None
