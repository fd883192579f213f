"""The vocabulary of element maps: which elements of an operand each element of a result is computed from.

A rule converts masks exactly: wanted elements of a result into the elements of the operand that they come from, and
marked elements of the operand into the elements of the result that depend on them. Elements are counted as the engines
do: by partition (dimension 0) and by position in it, the free dimensions taken together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar, TypeAlias

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.facts.light_classes import dataclass

Shape: TypeAlias = tuple[int, ...]
Values: TypeAlias = Mapping[str, Array]

VOCABULARY = ("same", "broadcast", "transpose", "row x column", "axes", "scan", "gather", "all")


def _rows(mask: Array) -> Array:
    """Return a mask by partition and place in it."""
    return mask.reshape(mask.shape[0] if mask.ndim else 1, -1)


def _form(shape: Shape) -> tuple[int, int]:
    """Return the partitions, and the elements of each, of a shape."""
    return (shape[0] if shape else 1), math.prod(shape[1:])


class Rule:
    """A rule from the elements of one operand to those of one result."""

    word: ClassVar[str]

    @property
    def needs(self) -> tuple[str, ...]:
        """The operands whose values decide."""
        return ()

    @property
    def kind(self) -> str:
        """The word of the vocabulary."""
        return self.word

    def sources(self, wanted: Array, shape: Shape, values: Values) -> Array:
        """Return the elements of an operand of this shape from which the wanted elements of the result come."""
        raise NotImplementedError

    def results(self, marked: Array, shape: Shape, values: Values) -> Array:
        """Return the elements of a result of this shape that depend on the marked elements of the operand."""
        raise NotImplementedError


@dataclass(frozen=True)
class Same(Rule):
    """Each result element comes from the operand element at the same position; shapes may differ, the order not."""

    word = "same"

    def sources(self, wanted: Array, shape: Shape, values: Values) -> Array:
        return wanted.reshape(shape)

    def results(self, marked: Array, shape: Shape, values: Values) -> Array:
        return marked.reshape(shape)


@dataclass(frozen=True)
class Broadcast(Rule):
    """An element for each partition, for each place in a partition, or one for all; a register or a number is one."""

    word = "broadcast"

    def sources(self, wanted: Array, shape: Shape, values: Values) -> Array:
        found = _rows(wanted)
        for axis, size in enumerate(_form(shape)):
            if size == 1:
                found = np.logical_or.reduce(found, axis=axis, keepdims=True)
        return found.reshape(shape)

    def results(self, marked: Array, shape: Shape, values: Values) -> Array:
        return np.broadcast_to(_rows(marked), _form(shape)).reshape(shape)


@dataclass(frozen=True)
class Transpose(Rule):
    """The operand with its dimensions in another order; further ones are taken together with the last."""

    word = "transpose"
    order: tuple[int, ...] = (1, 0)

    def _dimensions(self, shape: Shape) -> Shape:
        last = len(self.order) - 1
        return (*shape[:last], math.prod(shape[last:]))

    def sources(self, wanted: Array, shape: Shape, values: Values) -> Array:
        dimensions = self._dimensions(shape)
        moved = wanted.reshape([dimensions[axis] for axis in self.order])
        return moved.transpose(np.argsort(self.order)).reshape(shape)

    def results(self, marked: Array, shape: Shape, values: Values) -> Array:
        return marked.reshape(self._dimensions(marked.shape)).transpose(self.order).reshape(shape)


@dataclass(frozen=True)
class Column(Rule):
    """Each result element comes from a column of the operand: that of its row (``axis`` 0) or column (1); ``rows``:
    only these.
    """

    word = "row x column"
    axis: int
    rows: tuple[int, ...] | None = None

    def sources(self, wanted: Array, shape: Shape, values: Values) -> Array:
        columns = _rows(wanted).any(axis=1 - self.axis)
        found = np.zeros((math.prod(shape) // columns.size, columns.size), np.bool_)
        found[slice(None) if self.rows is None else list(self.rows)] = columns
        return found.reshape(shape)

    def results(self, marked: Array, shape: Shape, values: Values) -> Array:
        form = _form(shape)
        rows = marked.reshape(-1, form[self.axis])
        columns = rows[slice(None) if self.rows is None else list(self.rows)].any(axis=0)
        return np.broadcast_to(np.expand_dims(columns, 1 - self.axis), form).reshape(shape)


@dataclass(frozen=True)
class Axes(Rule):
    """All elements along some dimensions of the operand; None: along all of its free ones."""

    word = "axes"
    axes: tuple[int, ...] | None = None

    def _axes(self, shape: Shape) -> tuple[int, ...]:
        return tuple(range(1, len(shape))) if self.axes is None else self.axes

    def sources(self, wanted: Array, shape: Shape, values: Values) -> Array:
        axes = self._axes(shape)
        kept = [1 if axis in axes else size for axis, size in enumerate(shape)]
        return np.broadcast_to(wanted.reshape(kept), shape)

    def results(self, marked: Array, shape: Shape, values: Values) -> Array:
        found: Array = np.asarray(np.any(marked, axis=self._axes(marked.shape)))
        return found.reshape(shape)


@dataclass(frozen=True)
class Turns(Rule):
    """Every second (third, ...) element of a partition makes one half (third, ...) of the result's partition."""

    word = "axes"
    turns: int

    def sources(self, wanted: Array, shape: Shape, values: Values) -> Array:
        found = np.zeros(_form(shape), np.bool_)
        for turn, part in enumerate(np.split(_rows(wanted), self.turns, axis=1)):
            found[:, turn :: self.turns] = part.any(axis=1, keepdims=True)
        return found.reshape(shape)

    def results(self, marked: Array, shape: Shape, values: Values) -> Array:
        rows = _rows(marked)
        parts = [rows[:, turn :: self.turns].any(axis=1, keepdims=True) for turn in range(self.turns)]
        return np.repeat(np.concatenate(parts, axis=1), math.prod(shape[1:]) // self.turns, axis=1).reshape(shape)


@dataclass(frozen=True)
class Blocks(Rule):
    """All elements of a block of partitions and places, one in each partition of the result (``rows``: in those)."""

    word = "axes"
    partitions: int
    places: int
    rows: tuple[int, ...] | None = None  # of the result: one for each block of partitions

    def sources(self, wanted: Array, shape: Shape, values: Values) -> Array:
        rows = _rows(wanted)
        if self.rows is None:
            blocks = rows.reshape(-1, self.partitions, rows.shape[1]).any(axis=1)
        else:
            blocks = rows[list(self.rows)]
        return np.repeat(np.repeat(blocks, self.partitions, axis=0), self.places, axis=1).reshape(shape)

    def results(self, marked: Array, shape: Shape, values: Values) -> Array:
        partitions, places = _form(marked.shape)
        form = (partitions // self.partitions, self.partitions, places // self.places, self.places)
        blocks: Array = np.logical_or.reduce(marked.reshape(form), axis=(1, 3))
        if self.rows is None:
            return np.repeat(blocks, self.partitions, axis=0).reshape(shape)
        found = np.zeros(_form(shape), np.bool_)
        found[list(self.rows)] = blocks
        return found.reshape(shape)


@dataclass(frozen=True)
class Scan(Rule):
    """Each result element comes from the elements of its partition up to the same position."""

    word = "scan"

    def sources(self, wanted: Array, shape: Shape, values: Values) -> Array:
        return np.logical_or.accumulate(_rows(wanted)[:, ::-1], axis=1)[:, ::-1].reshape(shape)

    def results(self, marked: Array, shape: Shape, values: Values) -> Array:
        return np.logical_or.accumulate(_rows(marked), axis=1).reshape(shape)


@dataclass(frozen=True)
class All(Rule):
    """Each result element comes from all elements; ``partitions``: from its own group of so many partitions."""

    word = "all"
    partitions: int | None = None

    def sources(self, wanted: Array, shape: Shape, values: Values) -> Array:
        if self.partitions is None:
            return np.full(shape, wanted.any())
        groups = wanted.reshape(wanted.shape[0] // self.partitions, -1).any(axis=1)
        return np.repeat(groups, math.prod(shape) // groups.size).reshape(shape)

    def results(self, marked: Array, shape: Shape, values: Values) -> Array:
        return self.sources(marked, shape, values)


@dataclass(frozen=True)
class Parts(Rule):
    """Stretches ``(first of the result, first of the operand, length)`` of a dimension, or of all elements in order."""

    word = "gather"
    stretches: tuple[tuple[int, int, int], ...]
    dimension: int | None = None

    def sources(self, wanted: Array, shape: Shape, values: Values) -> Array:
        return self._moved(wanted, shape, backward=True)

    def results(self, marked: Array, shape: Shape, values: Values) -> Array:
        return self._moved(marked, shape, backward=False)

    def _moved(self, mask: Array, shape: Shape, *, backward: bool) -> Array:
        found: Array = np.zeros(shape, np.bool_)
        there: Array = found.reshape(-1)
        here: Array = mask.reshape(-1)
        if self.dimension is not None:
            there, here = np.moveaxis(found, self.dimension, 0), np.moveaxis(mask, self.dimension, 0)
        for of_result, of_operand, count in self.stretches:
            first, other = (of_operand, of_result) if backward else (of_result, of_operand)
            there[first : first + count] |= here[other : other + count]
        return found


def _index_places(shape: Shape, each: int, partitions: int) -> tuple[Array, Array]:
    """Return partition and place of the index of each element of a result."""
    partition, place = np.indices(_form(shape), sparse=True)
    number = place // each
    return partition - partition % partitions + number % partitions, number // partitions


@dataclass(frozen=True)
class Index(Rule):
    """The place of the index of a result's element: one for ``each`` elements, in turns over ``partitions``."""

    word = "gather"
    each: int = 1
    partitions: int = 1

    def sources(self, wanted: Array, shape: Shape, values: Values) -> Array:
        found = np.zeros(_form(shape), np.bool_)
        np.logical_or.at(found, _index_places(wanted.shape, self.each, self.partitions), _rows(wanted))
        return found.reshape(shape)

    def results(self, marked: Array, shape: Shape, values: Values) -> Array:
        return _rows(marked)[_index_places(shape, self.each, self.partitions)].reshape(shape)


@dataclass(frozen=True)
class Gather(Rule):
    """The element of the partition that an operand names; without the values of that operand any of the partition."""

    word = "gather"
    index: str
    each: int = 1
    partitions: int = 1

    @property
    def needs(self) -> tuple[str, ...]:
        """The names of the operands whose values the rule needs."""
        return (self.index,)

    def _chosen(self, shape: Shape, size: int, values: Values) -> tuple[Array, Array, Array]:
        """Return partition and place of the element for each of a result's, and whether there is such a one."""
        partitions, count = _form(shape)
        first = _rows(values[self.index])[_index_places(shape, self.each, self.partitions)].astype(np.int64)
        place = first + np.arange(count) % self.each
        partition = np.broadcast_to(np.arange(partitions)[:, None], place.shape)
        return partition, np.clip(place, 0, size - 1), (place >= 0) & (place < size)

    def sources(self, wanted: Array, shape: Shape, values: Values) -> Array:
        if self.index not in values:
            return All(1).sources(wanted, shape, values)
        found = np.zeros(_form(shape), np.bool_)
        partition, place, is_there = self._chosen(wanted.shape, found.shape[1], values)
        np.logical_or.at(found, (partition, place), _rows(wanted) & is_there)
        return found.reshape(shape)

    def results(self, marked: Array, shape: Shape, values: Values) -> Array:
        if self.index not in values:
            return All(1).results(marked, shape, values)
        rows = _rows(marked)
        partition, place, is_there = self._chosen(shape, rows.shape[1], values)
        found: Array = rows[partition, place] & is_there
        return found.reshape(shape)


@dataclass(frozen=True)
class Permutation(Rule):
    """The transposed operand, its rows chosen by the ones of a matrix; without the matrix all of a column."""

    word = "gather"

    @property
    def needs(self) -> tuple[str, ...]:
        """The names of the operands whose values the rule needs."""
        return ("moving",)

    def sources(self, wanted: Array, shape: Shape, values: Values) -> Array:
        if "moving" not in values:
            return Column(0).sources(wanted, shape, values)
        found = np.zeros(_form(shape), np.bool_)
        np.logical_or.at(found, (_rows(values["moving"]) == 1).argmax(axis=0), _rows(wanted).T)
        return found.reshape(shape)

    def results(self, marked: Array, shape: Shape, values: Values) -> Array:
        if "moving" not in values:
            return Column(0).results(marked, shape, values)
        found: Array = _rows(marked)[(_rows(values["moving"]) == 1).argmax(axis=0)].T
        return found.reshape(shape)


@dataclass(frozen=True, eq=False)
class Only(Rule):
    """A rule for some elements only, which are named by partition and place."""

    rule: Rule
    made: Array | None = None  # of the result; None for all
    of: Array | None = None  # of the operand; None for all

    @property
    def kind(self) -> str:
        """The word of the rule."""
        return self.rule.kind

    @property
    def needs(self) -> tuple[str, ...]:
        """The operands that the rule needs."""
        return self.rule.needs

    def sources(self, wanted: Array, shape: Shape, values: Values) -> Array:
        return _within(self.rule.sources(_within(wanted, self.made), shape, values), self.of)

    def results(self, marked: Array, shape: Shape, values: Values) -> Array:
        return _within(self.rule.results(_within(marked, self.of), shape, values), self.made)


def _within(mask: Array, bounds: Array | None) -> Array:
    return mask if bounds is None else (_rows(mask) & bounds).reshape(mask.shape)


SAME, BROADCAST, SCAN, ALONG_FREE, WITHIN_PARTITION = Same(), Broadcast(), Scan(), Axes(), All(1)
