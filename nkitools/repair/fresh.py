"""Other arguments for a kernel than those of its test: other values, other sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.launch.frameworks import mapped_arrays
from nkitools.precision.runs import arrays_in
from nkitools.repair.case import Arguments

_MANY = 4  # so few values may rise or fall by chance
_FEW = 16  # an array with so few different values holds masks, labels or lengths, and stays as it is


def other_values(given: Arguments, seed: int, *, turned: bool = False) -> Arguments:
    """Return arguments with other numbers: those of each float array in another order, a little changed.

    Whole numbers in float arrays change places alone; an array that holds one number everywhere gets others. Arrays of
    integers, and of few different values, stay as they are; ``turned``: their rows change places.
    """
    rng = np.random.default_rng(seed)

    def change(array: Array) -> Array:
        if _holds_numbers(array) or _holds_whole_numbers(array):
            return _shuffled(array, rng)
        return np.roll(array, 1, axis=0) if turned and array.ndim else array

    args, kwargs = mapped_arrays(given, change)
    return tuple(args), dict(kwargs)


def scaled_values(given: Arguments, by: float) -> Arguments:
    """Return arguments whose float arrays, but those of whole or few different values, are multiplied."""

    def change(array: Array) -> Array:
        return (by * array.astype(np.float64)).astype(array.dtype) if _holds_numbers(array) else array

    args, kwargs = mapped_arrays(given, change)
    return tuple(args), dict(kwargs)


def with_one_other(given: Arguments) -> Iterator[Arguments]:
    """Yield arguments in which one float array has other numbers, for each array in turn."""
    for chosen in range(sum(map(_holds_numbers, _arrays(given)))):
        numbers = count()

        def change(array: Array, of: Iterator[int] = numbers, one: int = chosen) -> Array:
            is_chosen = _holds_numbers(array) and next(of) == one
            return _shuffled(array, np.random.default_rng(one)) if is_chosen else array

        args, kwargs = mapped_arrays(given, change)
        yield tuple(args), dict(kwargs)


def with_rows_in_order(given: Arguments, seed: int) -> Arguments:
    """Return arguments with rows in another order, the same for all arrays with the commonest number of rows."""
    sizes = [len(each) for each in _arrays(given) if each.ndim and each.size > 1]
    order = np.random.default_rng(seed).permutation(max(sizes, key=sizes.count))
    args, kwargs = mapped_arrays(given, lambda each: each[order] if each.ndim and len(each) == order.size else each)
    return tuple(args), dict(kwargs)


def has_codes(given: Arguments) -> bool:
    """Return whether some array holds integers, masks or labels."""
    arrays = [each for each in _arrays(given) if each.size > 1]
    return any(not _holds_numbers(each) and not _holds_whole_numbers(each) for each in arrays)


def _holds_numbers(array: Array) -> bool:
    some = _floats(array)[: 1 << 14]
    return not (some == np.rint(some)).all() and np.unique(some).size > min(_FEW, some.size // 2)


def _holds_whole_numbers(array: Array) -> bool:
    """Return whether a float array holds one number everywhere, or many numbers, such as those of a range."""
    numbers = _floats(array.reshape(-1)[: 1 << 14])
    many = np.unique(numbers).size
    return (many == 1 and bool(numbers[0])) or many > 4 * _FEW


def _floats(array: Array) -> Array:
    """Return the elements of an array of floats as float64; none if one is not finite, and of other arrays."""
    is_float = array.dtype.names is None and array.dtype.kind not in "biu" and array.size > 1
    numbers = array.astype(np.float64).reshape(-1) if is_float else np.zeros(0)
    return numbers if np.isfinite(numbers).all() else numbers[:0]


def _shuffled(array: Array, rng: np.random.Generator) -> Array:
    """Return the numbers of an array in another order, up to a tenth smaller; whole ones keep their values.

    An array whose rows (or columns) are all alike keeps that form, and one that rises or falls along an axis its order.
    One of a single number gets different ones. Numbers that order puts back in their places are halved, whole ones to
    whole ones.
    """
    found = in_order(_mixed_in_form(array, rng), array)
    if not np.array_equal(found, array):
        return found
    half = array.astype(np.float64) / 2
    return (np.floor(half) if (found == np.rint(found)).all() else half).astype(array.dtype)


def _mixed_in_form(array: Array, rng: np.random.Generator) -> Array:
    numbers = array.astype(np.float64)
    if _has_ordered_columns(numbers):
        return np.asarray(rng.permutation(numbers, axis=0) * rng.choice((0.5, 1.0))).astype(array.dtype)
    if (numbers == numbers.flat[0]).all():
        return (numbers * rng.uniform(0.5, 1.5, numbers.shape)).astype(array.dtype)
    for axis in range(numbers.ndim):
        first = np.take(numbers, [0], axis=axis)
        if numbers.shape[axis] > 1 and (numbers == first).all():
            return np.array(np.broadcast_to(_mixed(first, rng), numbers.shape)).astype(array.dtype)
    return _mixed(numbers, rng).astype(array.dtype)


def _has_ordered_columns(numbers: Array) -> bool:
    """Return whether some column is nowhere above a later one, as the corners of boxes are, so that rows stay whole."""
    rows = numbers.reshape(-1, numbers.shape[-1]) if numbers.ndim else numbers.reshape(0, 0)
    lags = range(1, min(_MANY, rows.shape[-1] - 1) + 1) if len(rows) >= 2 * _FEW else ()
    return any(
        ((rows[:, lag:] >= rows[:, :-lag]).all(0) & (rows[:, lag:] > rows[:, :-lag]).any(0)).any() for lag in lags
    )


def in_order(array: Array, like: Array) -> Array:
    """Return ``array``, sorted along each axis along which ``like`` rises or falls, such as a running sum."""
    for axis in range(array.ndim):
        if like.shape[axis] > _MANY:
            steps = np.diff(like.astype(np.float64), axis=axis)
            if (steps >= 0).all() and (steps > 0).any():
                array = np.sort(array, axis=axis)
            elif (steps <= 0).all() and (steps < 0).any():
                array = np.flip(np.sort(array, axis=axis), axis)
    return np.ascontiguousarray(array)


def _mixed(numbers: Array, rng: np.random.Generator) -> Array:
    mixed = rng.permutation(numbers.reshape(-1)).reshape(numbers.shape)
    if (mixed == np.rint(mixed)).all():
        return mixed
    return np.asarray(mixed * rng.uniform(0.9, 1.0, numbers.shape))


def _arrays(given: Arguments) -> list[Array]:
    return [array for _, (_, array) in arrays_in("", given)]


CHANGES: tuple[Callable[[int], int], ...] = (
    lambda size: 2 * size,
    lambda size: size // 2,
    lambda size: size + size // 2,
    lambda size: size - 1,
)
RAGGED = "one less: "
"""The begin of the text for shapes with one size less by 1: many kernels are not made for them, and do not refuse."""


def other_shapes(
    given: Arguments, changes: tuple[Callable[[int], int], ...] = CHANGES
) -> Iterator[tuple[str, Arguments]]:
    """Yield arguments in which one size is another wherever it stands, with the shapes in words."""
    sizes = sorted({size for array in _arrays(given) for size in array.shape if size > 1}, reverse=True)
    for change in changes:
        new_is_ragged = change is CHANGES[-1]
        for size in sizes:
            other = change(size)
            if other < 1 or other in sizes:
                continue
            rng = np.random.default_rng(other)

            def change_size(array: Array, old: int = size, new: int = other, rng: np.random.Generator = rng) -> Array:
                if old not in array.shape:
                    return array
                return _resized(array, tuple(new if each == old else each for each in array.shape), rng)

            args, kwargs = mapped_arrays(given, change_size)
            found = tuple(args), dict(kwargs)
            said = ", ".join(f"{list(each.shape)}" for each in _arrays(found))
            yield f"{RAGGED if new_is_ragged else ''}{said}", found


def other_numbers(given: Arguments) -> Iterator[tuple[str, Arguments]]:
    """Yield arguments in which one plain number is another, with both numbers in words."""
    args, kwargs = given
    for place, value in enumerate(args):
        if type(value) in (int, float):
            yield f"{_other(value):g} for {value:g}", ((*args[:place], _other(value), *args[place + 1 :]), kwargs)
    for name, value in kwargs.items():
        if type(value) in (int, float):
            yield f"{name}={_other(value):g}", (args, {**kwargs, name: _other(value)})


def _other(value: float) -> float:
    return value + 1 if isinstance(value, int) else 1.5 * value


_TILE = 128  # the partitions of a tile


def smaller_shapes(given: Arguments) -> Iterator[Arguments]:
    """Yield arguments cut down to one tile of 128, then to two, along each axis that is a multiple of 128."""
    for tiles in (1, 2):
        size = tiles * _TILE

        def cut(array: Array, size: int = size) -> Array:
            return array[tuple(slice(0, size if each % _TILE == 0 else None) for each in array.shape)]

        args, kwargs = mapped_arrays(given, cut)
        found = tuple(args), dict(kwargs)
        if [each.shape for each in _arrays(found)] != [each.shape for each in _arrays(given)]:
            yield found


def _resized(array: Array, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Return an array of another shape, with values like those of ``array``."""
    like = array
    for axis in range(array.ndim):
        index = np.arange(shape[axis]) % array.shape[axis]
        array = np.take(array, index, axis=axis)
    return in_order(_shuffled(array, rng), like) if _holds_numbers(array) else array
