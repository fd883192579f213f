"""The tensors that are compared with right values: a kernel's results, and intermediates at the end of loop turns."""

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
from nkitools.precision.independent_reference import independent_of_run
from nkitools.precision.reference import references_of
from nkitools.precision.runs import Half, Values, arrays_in, in_float64
from nkitools.record.rows import Access
from nkitools.why.traced_calls import Held, Trace

Function = Callable[..., Any]
"""A function of the kernel's arguments that returns the right values of a tensor."""

RELATIVE = 1e-5
"""The largest error of a reference that computes in float32, relative to the largest value of a tensor."""


@dataclass(frozen=True, eq=False)
class Target:
    """A tensor at some point of a run, with its values and the right ones."""

    name: str
    turn: dict[str, int]
    program: tuple[int, ...]
    number: int  # of the record
    before: int  # the position of the first instruction after that time
    access: Access
    got: Array
    want: Array
    wrong: Array  # the elements that differ
    key: str = ""  # the name in ``expect`` of an intermediate; '' for a result

    @property
    def scale(self) -> float:
        """Return the largest magnitude of the finite right values; 1 if that is 0."""
        finite = np.abs(self.want[np.isfinite(self.want)])
        return float(finite.max(initial=0.0)) or 1.0


class Expected:
    """The right results and intermediates of a kernel, for any arguments. ``rule``: the author's, for results."""

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
        """Return for each function of ``expect`` the loop counters that it takes, its other parameters."""
        found = {}
        for name, function in self.expect.items():
            kinds = inspect.signature(function).parameters.values()
            plain = [each for each in kinds if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
            by_place = [each for each in plain if each.kind is not each.KEYWORD_ONLY]
            left = by_place[arguments:] + [each for each in plain if each.kind is each.KEYWORD_ONLY]
            found[name] = tuple(each.name for each in left if each.name not in self._kwargs and each.name != "program")
        return found

    def results(self, half: Half, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Array | None]:
        """Return the right values of each result, in float64, in the order of the run's results; None if unknown."""
        shapes = [(name, values.array.shape) for name, values in _values_of(half)]
        with independent_of_run(half.run, args, kwargs):
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
        """Return the right values of an intermediate. ValueError for another size, TypeError for several arrays."""
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
    """Return a target for each result, and for each argument that the run changed and does not return.

    Those without right values, or with right values of another shape, are left out.
    """
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
    """Return for each result the number of its record and its view."""
    records = list(enumerate(half.run.all_records))
    places = [(number, access) for number, record in records for access in record.outputs]
    for name in sorted(half.changed - half.returned):
        access = half.accesses[name]
        places += [(number, access) for number, record in records if access.storage in record.storages][:1]
    return places


def intermediates_of(
    trace: Trace, expected: Expected, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[Target]:
    """Return a target for each intermediate, in the order in which the kernel wrote them."""
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
    """Raise NothingCompared if a tensor and its right values are NaN in all turns."""
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
    """Return a mask of the elements that differ by more than ``rule`` allows.

    Without a rule: by more than ``relative`` times the largest finite right value.
    """
    if rule is not None:
        return compared(got, want, rule).wrong
    finite = np.abs(want[np.isfinite(want)])
    return compared(got, want, Rule(atol=relative * float(finite.max(initial=0.0)))).wrong
