"""The values that are compared with what they should be: a kernel's results, and intermediates at the end of turns."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nkitools.chip.argument_types import Argument
from nkitools.chip.numerics import Array
from nkitools.comparison.compared_arrays import compared
from nkitools.comparison.form import must_hold_numbers
from nkitools.comparison.rule import Rule
from nkitools.precision.difference import exact
from nkitools.precision.reference import references_of
from nkitools.precision.runs import Half, Values, arrays_in, in_float64
from nkitools.record.rows import Access
from nkitools.why.traced_calls import Held, Trace

Function = Callable[..., Any]
"""A function of the kernel's arguments that returns what should be there."""

RELATIVE = 1e-5
"""The largest error of a reference that computes in float32, in parts of the largest value of a tensor."""


@dataclass(frozen=True, eq=False)
class Target:
    """A tensor at some time, with the values that it has and those that it should have."""

    name: str
    turn: dict[str, int]
    program: tuple[int, ...]
    number: int  # of the record
    before: int  # the position of the first instruction after that time
    access: Access
    got: Array
    want: Array
    wrong: Array  # the elements that differ
    key: str = ""  # of an intermediate, '' of a result

    @property
    def scale(self) -> float:
        """Return the largest magnitude of the right values."""
        finite = np.abs(self.want[np.isfinite(self.want)])
        return float(finite.max(initial=0.0)) or 1.0


class Expected:
    """The right results and intermediates of a kernel, for any arguments; ``rule``: the author's, for results."""

    def __init__(
        self, reference: Argument, expect: Mapping[str, Function], kwargs: Mapping[str, Any], rule: Rule | None = None
    ) -> None:
        self.reference = reference
        self.rule = rule if rule is not None and rule.is_stated else None
        self.expect = dict(expect)
        for name, function in self.expect.items():
            if not callable(function):
                raise TypeError(f"expect[{name!r}]: must be a function of the kernel's arguments, it is {function!r}")
        self._kwargs = frozenset(kwargs)

    def counters(self, arguments: int) -> dict[str, tuple[str, ...]]:
        """Return the loop counters that each function names: its parameters beside the kernel's arguments."""
        found = {}
        for name, function in self.expect.items():
            kinds = inspect.signature(function).parameters.values()
            plain = [each for each in kinds if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
            by_place = [each for each in plain if each.kind is not each.KEYWORD_ONLY]
            left = by_place[arguments:] + [each for each in plain if each.kind is each.KEYWORD_ONLY]
            found[name] = tuple(each.name for each in left if each.name not in self._kwargs and each.name != "program")
        return found

    def results(self, half: Half, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Array | None]:
        """Return what each result should be, in float64, in the order of the run's results; None where unknown."""
        shapes = [(name, values.array.shape) for name, values in _values_of(half)]
        return references_of(self.reference, shapes, len(half.outputs), args, dict(kwargs))

    def intermediate(
        self,
        name: str,
        turn: Mapping[str, int],
        program: tuple[int, ...],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        shape: tuple[int, ...],
    ) -> Array:
        """Return what an intermediate should hold. ValueError for a function that returns another size."""
        function = self.expect[name]
        given, named = in_float64((args, dict(kwargs)))
        if "program" in inspect.signature(function).parameters:
            named = {**named, "program": program}
        arrays = arrays_in(name, function(*given, **{**named, **turn}))
        if len(arrays) != 1:
            raise TypeError(f"expect[{name!r}]: it must return one array, it returns {len(arrays)}")
        found = exact(arrays[0][1][1])
        if found.shape != shape and found.size != int(np.prod(shape)):
            raise ValueError(
                f"expect[{name!r}]: it returns the shape {list(found.shape)}, {name} has {list(shape)} in the kernel"
            )
        return found.reshape(shape)


def results_of(half: Half, expected: Expected, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Target]:
    """Return the results of a run, and the arguments that it has written, as targets."""
    found = []
    wants = expected.results(half, args, kwargs)
    for (name, values), want, (number, access) in zip(_values_of(half), wants, _places_of(half), strict=False):
        if want is None or access.layout.shape != want.shape:
            continue
        end = half.run.all_records[number].count
        must_hold_numbers(name, values.array, want)
        wrong = differing(values.array, want, rule=expected.rule)
        found.append(Target(name, {}, (), number, end, access, values.array, want, wrong))
    return found


def _values_of(half: Half) -> list[tuple[str, Values]]:
    written = sorted(half.changed - half.returned)
    return [*half.outputs.items(), *((name, half.arguments[name]) for name in written)]


def _places_of(half: Half) -> list[tuple[int, Access]]:
    """Return the record of each result, by its number, and the place in it."""
    records = list(enumerate(half.run.all_records))
    places = [(number, access) for number, record in records for access in record.outputs]
    for name in sorted(half.changed - half.returned):
        access = half.accesses[name]
        places += [(number, access) for number, record in records if access.storage in record.storages][:1]
    return places


def intermediates_of(
    trace: Trace, expected: Expected, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[Target]:
    """Return the intermediates of a run as targets, in the order in which the kernel has made them."""
    found: list[Target] = []
    for held in sorted(trace.held.values(), key=lambda each: (each.position, each.number)):
        want = expected.intermediate(held.name, held.turn, held.program, args, kwargs, held.value.shape)
        wrong = differing(held.value, want)
        if held.unwritten is not None:
            wrong &= ~held.unwritten
        found.append(_target(held, want, wrong))
    for name in expected.expect:
        _must_hold_numbers(name, [(each.got, each.want) for each in found if each.name == name])
    return found


def _must_hold_numbers(name: str, pairs: list[tuple[Array, Array]]) -> None:
    """Raise NothingCompared where a tensor is NaN in all of its turns, as is what it should hold."""
    if pairs:
        got, want = (np.concatenate([each.ravel() for each in side]) for side in zip(*pairs, strict=True))
        must_hold_numbers(name, got, want)


def _target(held: Held, want: Array, wrong: Array) -> Target:
    return Target(
        held.name,
        held.turn,
        held.program,
        held.number,
        held.position + 1,
        held.access,
        held.value,
        want,
        wrong,
        held.name,
    )


def differing(got: Array, want: Array, relative: float = RELATIVE, rule: Rule | None = None) -> Array:
    """Return the elements that differ: by the author's rule, else by more than a reference in float32 explains."""
    if rule is not None:
        return compared(got, want, rule).wrong
    finite = np.abs(want[np.isfinite(want)])
    return compared(got, want, Rule(atol=relative * float(finite.max(initial=0.0)))).wrong
