"""The kernel and its reference on changed arguments: which elements of arguments each makes a value of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.rules.finding import KernelError
from nkitools.why.targets import Expected, Target
from nkitools.why.traced_calls import Call, Trace, Write

_NONE = 1e-6  # parts of the largest value of a target, below which a change is none, of the kernel or the reference
_ALIKE = 0.02  # parts of a change, within which two are the same
_PARTS = 32  # an axis is looked at in parts of so many


class Influence(Enum):
    """The influence of some elements of an argument on a value, in the kernel and in the reference."""

    RIGHT = "right"  # the same in both
    NONE = "none"  # none in both
    EXTRA = "extra"  # in the kernel alone
    LOST = "lost"  # in the reference alone
    OTHER = "other"  # in both, but not the same


@dataclass(frozen=True, eq=False)
class Change:
    """The changes of a target when some elements of an argument change; ``kernel`` None where the kernel failed."""

    reference: Array
    kernel: Array | None
    writes: Mapping[tuple[int, int], list[Write]]


class ChangedArguments:
    """A kernel and its reference, computed with some elements of an argument changed."""

    def __init__(self, call: Call, expected: Expected, target: Target, number: int) -> None:
        self._call, self._expected, self._target, self._number = call, expected, target, number
        self._scale = target.scale
        self.base = Trace(self._wanted(), keeps_writes=True)
        self.runs = 0
        self._others: dict[str, Array] = {}  # the arguments with all elements changed
        call.run(self.base)

    @property
    def is_possible(self) -> bool:
        """Return whether what should be there can be computed for other arguments."""
        return bool(self._target.key) or self._expected.is_computed

    def arguments(self) -> dict[str, Array]:
        """Return the arguments of floating-point numbers, by name."""
        found = {name: self._call.at(place) for name, place in self._call.places().items()}
        return {name: array for name, array in found.items() if array.dtype.kind not in "biuV" or _is_float(array)}

    def reference(self, name: str, where: Array, target: Target | None = None) -> Array:
        """Return the change of a target's right values when the elements ``where`` of an argument change."""
        target = target or self._target
        args, kwargs = self._call.changed({name: self._changed(name, where)})
        with np.errstate(all="ignore"):
            if target.key:
                shape = target.got.shape
                want = self._expected.intermediate(target.key, target.turn, target.program, args, kwargs, shape)
            else:
                found = self._expected.result(self._number, args, kwargs)
                want = target.want if found is None else found
            return np.asarray(np.nan_to_num(want - target.want))

    def both(self, name: str, where: Array, *, keeps_writes: bool = False) -> Change:
        """Return the changes of the target in the reference and in the kernel."""
        reference = self.reference(name, where)
        trace = Trace(self._wanted(), keeps_writes=keeps_writes)
        self.runs += 1
        try:
            half = self._call.run(trace, values={name: self._changed(name, where)})
        except KernelError:
            return Change(reference, None, {})
        if self._target.key:
            target = self._target
            key = target.key, target.program, tuple(target.turn.values())
            now = trace.held[key].value if key in trace.held else None
        else:
            known = {**half.arguments, **half.outputs}.get(self._target.name)
            now = None if known is None else known.array
        if now is None:
            return Change(reference, None, {})
        with np.errstate(all="ignore"):
            return Change(reference, np.nan_to_num(now - self._target.got), trace.writes)

    def influence(self, change: Change, element: tuple[int, ...]) -> Influence:
        """Return the influence that a change shows on an element of the target."""
        theirs = float(change.reference[element])
        ours = 0.0 if change.kernel is None else float(change.kernel[element])
        needs, has = abs(theirs) > _NONE * self._scale, abs(ours) > _NONE * self._scale
        if not needs or not has:
            if needs and abs(theirs) <= 2 * _NONE * self._scale:
                return Influence.RIGHT  # too little to be seen in float32
            return Influence.LOST if needs else Influence.EXTRA if has else Influence.NONE
        near = abs(theirs - ours) <= _ALIKE * max(abs(theirs), abs(ours)) + _NONE * self._scale
        return Influence.RIGHT if near else Influence.OTHER

    def needed(self, name: str, element: tuple[int, ...], among: Array) -> Array:
        """Return which elements of an argument the reference needs for an element of the target, ``among`` some."""
        if not self._needs(name, among, element):
            return np.zeros_like(among)
        found = among.copy()
        for axis, size in enumerate(among.shape):
            kept = np.zeros(size, np.bool_)
            for first, last in self._parts(name, element, among, axis, 0, size):
                kept[first:last] = True
            self._trim(name, element, among, axis, kept)
            shape = [1] * among.ndim
            shape[axis] = size
            found &= kept.reshape(shape)
        return found

    def _parts(
        self, name: str, element: tuple[int, ...], among: Array, axis: int, first: int, last: int
    ) -> Iterator[tuple[int, int]]:
        """Yield the parts of an axis between two indices that the reference needs."""
        if not self._needs_part(name, element, among, axis, first, last):
            return
        if last - first <= max(1, among.shape[axis] // _PARTS):
            yield first, last
            return
        middle = (first + last) // 2
        yield from self._parts(name, element, among, axis, first, middle)
        yield from self._parts(name, element, among, axis, middle, last)

    def _trim(self, name: str, element: tuple[int, ...], among: Array, axis: int, kept: Array) -> None:
        """Leave out indices at the ends of each stretch of kept ones that the reference does not need."""
        edges = np.flatnonzero(np.diff(np.concatenate(([False], kept, [False])).astype(np.int8)))
        part = max(1, kept.size // _PARTS)
        for first, last in edges.reshape(-1, 2).tolist():
            low, high = first, min(first + part, last)  # the first index that is needed lies between, or at low
            while high - low > 1:
                middle = (low + high) // 2
                if self._needs_part(name, element, among, axis, low, middle):
                    high = middle
                else:
                    low = middle
            kept[first:low] = False
            low, high = max(last - part, low), last  # and so does the last one, before high
            while high - low > 1:
                middle = (low + high) // 2
                if self._needs_part(name, element, among, axis, middle, high):
                    low = middle
                else:
                    high = middle
            kept[high:last] = False

    def _needs_part(self, name: str, element: tuple[int, ...], among: Array, axis: int, first: int, last: int) -> bool:
        part, index = np.zeros_like(among), [slice(None)] * among.ndim
        index[axis] = slice(first, last)
        part[tuple(index)] = among[tuple(index)]
        return bool(part.any()) and self._needs(name, part, element)

    def _needs(self, name: str, where: Array, element: tuple[int, ...]) -> bool:
        return abs(float(self.reference(name, where)[element])) > _NONE * self._scale

    def _wanted(self) -> dict[str, tuple[str, ...]]:
        return {self._target.key: tuple(self._target.turn)} if self._target.key else {}

    def _changed(self, name: str, where: Array) -> Array:
        """Return an argument with some elements changed by about a third, the same at every call."""
        array = self._call.at(self._call.places()[name])
        if name not in self._others:
            rng = np.random.default_rng(where.size)
            factors, steps = rng.uniform(1.2, 1.5, array.shape), rng.uniform(0.05, 0.1, array.shape)
            numbers = array.astype(np.float64)
            self._others[name] = np.where(numbers == 0, steps, numbers * factors).astype(array.dtype)
        found: Array = np.where(where, self._others[name], array)
        return found


def _is_float(array: Array) -> bool:
    """Return whether an array has numbers of ml_dtypes, whose kind NumPy does not have."""
    return array.dtype.kind == "V" and array.dtype.names is None
