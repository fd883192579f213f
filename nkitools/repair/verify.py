"""The verification of an edit: on the test's case in float64, on other values, and on other shapes."""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.repair.case import Arguments, Case, error_of, wide_want
from nkitools.repair.fresh import (
    RAGGED,
    has_codes,
    other_numbers,
    other_shapes,
    other_values,
    scaled_values,
    with_one_other,
    with_rows_in_order,
)

SHARP = 2e-5  # parts of the largest value by which a right kernel may be off in float64, of a reference in float32
_MOST_SHAPES = 8
_REFERENCE_SECONDS = 2.0  # for the reference's results in other shapes, and as many for other numbers
_FEWEST_LINKED = 3  # float arrays: of so many, one may be made of the others
_FEW_ELEMENTS = 16  # of all outputs: so few are tried with more sets of values


PROBES = {"values of the other sign": -1.0, "values ten times as large": 10.0, "zeros": 0.0}
"""Other values than those of the test: their names, and the factors of the arguments' numbers."""
_SOME = 64  # elements of each output that are compared on them


@dataclass(frozen=True)
class Verified:
    """The result of a verification.

    ``fails``: why the edit does not mend the kernel; '' if it holds on all that could be tried. ``on``: the cases on
    which it holds, in words. ``open``: why it is not verified on others. ``doubts``: the cases on which it does not
    hold, for which the kernel may not be made. ``error``: in float64. ``shapes``: the number of other shapes on which
    it holds.
    """

    fails: str = ""
    on: tuple[str, ...] = ()
    open: str = ""
    doubts: tuple[str, ...] = ()
    error: float = 0.0
    shapes: int = 0
    outputs: bytes = field(default=b"", repr=False)  # on the test's case; edits with equal bits count as one
    elsewhere: tuple[Array, ...] = field(default=(), repr=False)  # some elements of the outputs on PROBES
    agrees: int = 0  # the number of PROBES on which it agrees with the reference

    @property
    def is_repaired(self) -> bool:
        """Return whether the edit holds on values that the search has not seen."""
        return not self.fails and not self.open


class Verification:
    """The cases on which edits of a kernel are verified; each case is made once."""

    def __init__(self, case: Case) -> None:
        self.case = case

    def of_reference(self) -> str:
        """Return a sentence if the reference raises, or gives other results, when called again; '' if it does not."""
        if self.case.reference is None:
            return ""
        try:
            again = self.case.right_for(self.case.given)
        except Exception as error:  # the author's function may raise anything
            return f"the reference raises {type(error).__name__} when it is called again: {error}"
        if self._is_as_given(again):
            return ""
        return "the reference gives other results when it is called again: it is random or keeps a state"

    def prepare(self) -> None:
        """Call the reference now for all cases of the verification."""
        if self.case.reference is not None:
            _ = self._fresh, self._shapes, self._numbers, self._large, self._wide_want, self._right_elsewhere

    @cached_property
    def _wide_want(self) -> list[Array]:
        if self.case.reference is not None:
            with suppress(Exception):  # a reference that does not take float64
                found = wide_want(self.case.reference, self.case.given)
                if [each.shape for each in found] == [each.shape for each in self.case.want]:
                    return found
        return self.case.want

    def wide_error(self) -> float:
        """Return the error in float64 of the kernel as it runs now."""
        try:
            return error_of(self.case.kernel.outputs(self.case.given, wide=True), self._wide_want)
        except Exception:  # whatever a kernel raises
            return float("inf")

    @cached_property
    def is_linked(self) -> bool:
        """True if the reference ignores a float array: the test may have made it of the other arguments."""
        others = list(with_one_other(self.case.given))
        if len(others) < _FEWEST_LINKED:
            return False
        with suppress(Exception):  # the author's function may raise anything
            return any(self._is_as_given(self.case.right_for(each)) for each in others)
        return False

    def _is_as_given(self, want: list[Array]) -> bool:
        return len(want) == len(self.case.want) and all(
            one.shape == other.shape and np.array_equal(_plain(one), _plain(other), equal_nan=True)
            for one, other in zip(want, self.case.want, strict=True)
        )

    def _fresh_arguments(self) -> Iterator[tuple[str, Arguments]]:
        given = self.case.given
        if self.is_linked:
            yield from (("rows in another order", with_rows_in_order(given, seed)) for seed in range(2))
            return
        few = sum(each.size for each in self.case.want) < _FEW_ELEMENTS
        for seed in (1, 2, *range(4, 12 if few else 4)):
            yield "fresh values", other_values(given, seed)
        if has_codes(given):
            yield "fresh indices and masks", other_values(given, 3, turned=True)

    @cached_property
    def _fresh(self) -> tuple[list[tuple[str, Arguments, list[Array]]], str]:
        """Cases of other values, each with the right outputs; and why there are none, '' if there are."""
        found, why = [], "no argument holds numbers that could be others"
        for said, given in self._fresh_arguments():
            try:
                want = self.case.right_for(given)
            except Exception as error:  # the author's function may raise anything
                why = f"the reference raises {type(error).__name__} on other values"
                continue
            is_alike = [each.shape for each in want] == [each.shape for each in self.case.want]
            if is_alike and not self._is_as_given(want):
                found.append((said, given, want))
        return found, "" if found else why

    @cached_property
    def _shapes(self) -> list[tuple[str, Arguments, list[Array]]]:
        return [] if self.is_linked else list(self._taken(other_shapes(self.case.given)))

    @cached_property
    def _numbers(self) -> list[tuple[str, Arguments, list[Array]]]:
        return list(self._taken(other_numbers(self.case.given)))

    def _taken(self, others: Iterable[tuple[str, Arguments]]) -> Iterator[tuple[str, Arguments, list[Array]]]:
        """Yield those of ``others`` that the reference takes, each with the right outputs."""
        end = time.monotonic() + _REFERENCE_SECONDS
        for number, (said, given) in enumerate(others):
            if number >= 4 * _MOST_SHAPES or time.monotonic() > end:
                return
            try:
                want = self.case.right_for(given)
            except Exception:  # no shape for the reference
                continue
            if want and all(each.size for each in want):
                yield said, given, want

    def of_edit(self) -> Verified:
        """Verify the kernel as it runs now, with right outputs on the test's case."""
        case = self.case
        got = case.kernel.outputs(case.given)
        bits = b"".join(np.ascontiguousarray(each).tobytes() for each in got)
        error = self.wide_error()
        if case.kernel.findings(case.given):
            return Verified("an error-level finding")
        if case.reference is None:
            why = "no function says what is right of other values"
            return Verified(open=why, error=error, outputs=bits)
        cases, why = self._fresh
        for said, given, want in cases:
            if not self._holds(given, want):
                return Verified(f"wrong on {said}")
        on = list(dict.fromkeys(said for said, *_ in cases))
        shapes, doubts = self._on(self._shapes, "shapes ")
        numbers, wrong = self._on(self._numbers)
        on += [*numbers[:1], *shapes[:1]]
        doubts = [each for each in doubts if RAGGED not in each] if self._reads_shapes else []
        if wrong:
            why = f"with {wrong[0]} its outputs differ"
        if doubts and not shapes and not why:
            why = f"on {doubts[0]} its outputs differ"
        large, want = self._large
        if want and self._overflows(large):
            doubts.append("values ten times as large, where they overflow")
        elsewhere = tuple(self._some_of(case.kernel.outputs, by) for by in PROBES.values())
        agrees = sum(map(are_alike, elsewhere, self._right_elsewhere))
        return Verified("", tuple(on), why, tuple(doubts), error, len(shapes), bits, elsewhere, agrees)

    @cached_property
    def _right_elsewhere(self) -> list[Array]:
        return [self._some_of(self.case.right_for, by) for by in PROBES.values()]

    def _some_of(self, outputs: Callable[[Arguments], list[Array]], by: float) -> Array:
        """Return some elements of the outputs for scaled arguments; none if ``outputs`` raises."""
        try:
            found = [each.reshape(-1) for each in outputs(scaled_values(self.case.given, by)) if each.size]
            some = [each[np.linspace(0, each.size - 1, _SOME).astype(int)] for each in found]
            return np.concatenate([_plain(each).astype(np.float64) for each in some])
        except Exception:  # whatever a kernel or a reference raises
            return np.zeros(0)

    @cached_property
    def _reads_shapes(self) -> bool:
        """True if the kernel reads the shapes of its arguments; else it is made for those of the test alone."""
        nodes = (node for part in self.case.kernel.parts() for node in ast.walk(part.source.tree))
        lines = {line for part in self.case.kernel.parts() for line in range(part.first, part.last + 1)}
        return any(isinstance(each, ast.Attribute) and each.attr == "shape" and each.lineno in lines for each in nodes)

    def _holds(self, given: Arguments, want: list[Array]) -> bool:
        try:
            return self.case.is_right(self.case.kernel.outputs(given), want)
        except Exception:  # whatever a kernel raises
            return False

    @cached_property
    def _large(self) -> tuple[Arguments, list[Array]]:
        """Arguments ten times as large, with the right outputs; [] if the reference fails or overflows."""
        given = scaled_values(self.case.given, 10)
        if self.is_linked:
            return given, []
        with suppress(Exception):  # the author's function may raise anything
            want = self.case.right_for(given)
            if all(np.isfinite(each.astype(np.float64)).all() for each in want if each.dtype.names is None):
                return given, want
        return given, []

    def _overflows(self, given: Arguments) -> bool:
        """Return whether an output of the kernel is not finite, or the kernel raises."""
        try:
            got = self.case.kernel.outputs(given)
        except Exception:  # whatever a kernel raises
            return True
        return not all(np.isfinite(each.astype(np.float64)).all() for each in got if each.dtype.names is None)

    def _on(self, others: Iterable[tuple[str, Arguments, list[Array]]], kind: str = "") -> tuple[list[str], list[str]]:
        """Return the names of the cases on which the kernel is right, and of those on which it is wrong.

        A case that it refuses, by an exception, a finding or another shape, is in neither.
        """
        holds, differs = list[str](), list[str]()
        for said, given, want in islice(others, _MOST_SHAPES):
            try:
                got = self.case.kernel.outputs(given)
                is_right = self.case.is_right(got, want)
                if is_right or not self.case.kernel.findings(given):
                    is_alike = [each.shape for each in got[: len(want)]] == [each.shape for each in want]
                    if is_alike:
                        (holds if is_right else differs).append(f"{kind}{said}")
            except Exception:  # no shape for the kernel
                continue
        return holds, differs


def are_alike(one: Array, other: Array) -> bool:
    """Return whether some elements of two outputs differ by roundings alone."""
    far = 10 * SHARP * float(np.abs(other[np.isfinite(other)]).max(initial=0.0))
    return one.shape == other.shape and bool(np.allclose(one, other, rtol=1e-3, atol=far, equal_nan=True))


def _plain(array: Array) -> Array:
    """Return an array that NumPy can compare: the codes of packed dtypes, numbers of others."""
    if array.dtype.names is not None:
        return array.view(f"u{array.itemsize}")
    return array if array.dtype.kind in "biufc" else array.astype(np.float64)
