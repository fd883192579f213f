"""Other arguments for a kernel than the given ones: other values, a changed region, other shapes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from nkitools.chip.dtypes import as_dtype
from nkitools.chip.numerics import Array
from nkitools.comparison.dtype_table import limits_of
from nkitools.launch.frameworks import NUMPY, framework_of
from nkitools.launch.nested_arguments import mapped
from nkitools.precision.runs import arrays_in, copied, in_numpy
from nkitools.repair.fresh import CHANGES, has_codes, in_order, other_shapes, other_values

_FEW = 16  # different values; an array of fewer holds masks, labels or lengths
_LEAST_TIES = 8  # elements: smaller arrays get no ties


@dataclass(frozen=True)
class Given:
    """The arguments of one call.

    ``launch``: its grid and ranks. ``constants``: of the kernel's module, by name. ``said``: the arguments in words.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    launch: Mapping[str, Any] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    said: str = ""
    is_decisive: bool = True  # whether a kernel that is right must be right here

    def arrays(self, parameters: tuple[str, ...] = ()) -> dict[str, Array]:
        """Return the arrays by the names of ``parameters``, by keyword, or else by position."""
        named = dict(zip(parameters, self.args, strict=False)) if parameters else {}
        rest = {f"argument {at}": each for at, each in enumerate(self.args) if at >= len(named)}
        found = {**named, **rest, **self.kwargs}
        return {name: array for key, value in found.items() for name, (_, array) in arrays_in(key, value)}

    def shapes(self) -> str:
        """Return the shapes of the arrays in words."""
        return ", ".join(str(list(each.shape)) for each in self.arrays().values())


def varied(given: Given, seed: int) -> Iterator[Given]:
    """Yield calls with other values in the same shapes.

    First floats in another order and a little smaller. Then the same, with ties, and with denormals if the range has
    both signs. Last integers, masks and labels in another order of rows; they may have to keep theirs.
    """
    plain = _as_numpy(given)
    first = other_values((plain.args, plain.kwargs), seed)
    yield _like(given, first, "floats in another order, 0 to 10 % smaller")
    tied = mapped(first, lambda each: _tied(each, np.random.default_rng(seed)))
    yield _like(given, (tuple(tied[0]), dict(tied[1])), "the same with ties and denormals", is_decisive=False)
    if has_codes((plain.args, plain.kwargs)):
        turned = other_values((plain.args, plain.kwargs), seed, turned=True)
        yield _like(given, turned, "integers and masks in another order of rows", is_decisive=False)


def shaped(given: Given) -> Iterator[Given]:
    """Yield calls in which one size is another one wherever it stands: one less, then twice, half, and 1.5 times.

    After those with one less: calls in which one array with equal sizes is shorter along the last of them.
    """
    plain = _as_numpy(given)
    double, half, longer, ragged = CHANGES
    for said, found in other_shapes((plain.args, plain.kwargs), (ragged,)):
        yield _like(given, found, f"shapes {said}")
    yield from (_like(given, each, "one of two equal sizes changed") for each in _unequal((plain.args, plain.kwargs)))
    for said, found in other_shapes((plain.args, plain.kwargs), (double, half, longer)):
        yield _like(given, found, f"shapes {said}")


def _unequal(given: Any) -> Iterator[Any]:
    """Yield arguments in which one array with equal sizes is one shorter along the last of them."""
    for _, (mine, array) in arrays_in("", given):
        axes = [axis for axis, size in enumerate(array.shape) if size > 2 and array.shape.count(size) > 1]
        if axes and isinstance(mine, np.ndarray):
            index = tuple(slice(0, size - (axis == axes[-1])) for axis, size in enumerate(array.shape))
            changed = np.ascontiguousarray(array[index])
            yield mapped(given, partial(_replaced, mine, changed))


def _replaced(old: Array, new: Array, value: Any) -> Any:
    return new if value is old else value


def halves(given: Given, parameters: tuple[str, ...]) -> Iterator[tuple[str, str, Array]]:
    """Yield regions of the arguments, each with its argument's name, its text and its mask.

    Of each array of many numbers the second half along the two largest axes; any other array as a whole.
    """
    for name, array in given.arrays(parameters).items():
        if array.dtype.names is not None or array.dtype.kind in "OSU" or not array.size:
            continue
        if not holds_numbers(array):
            yield name, name, np.ones(array.shape, np.bool_)
            continue
        for axis in [axis for axis in np.argsort(array.shape)[::-1].tolist() if array.shape[axis] > 1][:2]:
            half = array.shape[axis] // 2
            mask = np.zeros(array.shape, np.bool_)
            mask[tuple(slice(half, None) if each == axis else slice(None) for each in range(array.ndim))] = True
            shown = ", ".join(f"{half}:{size}" if at == axis else ":" for at, size in enumerate(array.shape))
            yield name, f"{name}[{shown}]", mask


def with_region(given: Given, parameters: tuple[str, ...], name: str, mask: Array) -> Given:
    """Return a call with other values in the elements ``mask`` of one argument."""
    known = given.arrays(parameters)
    names, wanted = iter(known), known[name]

    def part(value: Any) -> Any:
        if framework_of(value) is None:
            return value
        mine = next(names)
        if mine != name:
            return value
        array = _changed_where(wanted, mask)
        framework = framework_of(value)
        return array if framework is NUMPY else framework.from_numpy(array, as_dtype(array.dtype))  # type: ignore[union-attr]

    args, kwargs = mapped((given.args, given.kwargs), part)
    return replace(given, args=tuple(args), kwargs=dict(kwargs), said=f"{name} changed in part")


def holds_numbers(array: Array) -> bool:
    """Return whether an array holds many different finite floats, unlike masks, labels or lengths."""
    if array.dtype.names is not None or array.dtype.kind in "biuOSU" or array.size < 2:
        return False
    some = array.reshape(-1)[: 1 << 14].astype(np.float64)
    return bool(np.isfinite(some).all()) and np.unique(some).size > min(_FEW, some.size // 2)


def has_negative(given: Given) -> bool:
    """Return whether an array of a call has a value below 0."""
    arrays = [each for each in given.arrays().values() if each.dtype.names is None and each.dtype.kind not in "bOSU"]
    return any(bool((each.astype(np.float64) < 0).any()) for each in arrays)


def _changed_where(array: Array, mask: Array) -> Array:
    """Return an array with other numbers, within its range, at ``mask``; one of few values is changed as a whole."""
    if not holds_numbers(array):
        turned = np.flip(array)
        is_float = array.dtype.kind not in "biu" and bool((array == array.flat[0]).all())
        return (array.astype(np.float64) + 0.5).astype(array.dtype) if is_float else np.ascontiguousarray(turned)
    numbers = array.astype(np.float64)
    low, high = float(numbers.min()), float(numbers.max())
    changed = np.where(mask, low + high - numbers, numbers)
    same = mask & (np.abs(changed - numbers) < (high - low) / 64)
    return np.asarray(np.where(same, numbers + (high - low) / 4, changed)).astype(array.dtype)


def _tied(value: Any, rng: np.random.Generator) -> Any:
    """Return an array in which some elements are equal to others, and one in a thousand is denormal.

    Only arrays of many numbers are changed, and only a range with both signs gets denormals.
    """
    if framework_of(value) is not NUMPY or not holds_numbers(value) or value.size < _LEAST_TIES:
        return value
    flat = value.reshape(-1).copy()
    places = rng.permutation(flat.size)
    some = max(1, flat.size // 64)
    flat[places[:some]] = flat[places[some : 2 * some]]
    limits = limits_of(value.dtype.name)
    if limits is not None and float(flat.min()) < 0 < float(flat.max()):
        flat[places[-max(1, flat.size // 1024) :]] = np.asarray(float(limits.smallest_normal) / 4).astype(value.dtype)
    return in_order(flat.reshape(value.shape), value)


def _as_numpy(given: Given) -> Given:
    """Return a call whose arrays are NumPy's."""
    args, kwargs = copied(in_numpy((given.args, given.kwargs)))
    return replace(given, args=tuple(args), kwargs=dict(kwargs))


def _like(given: Given, found: Any, said: str, *, is_decisive: bool = True) -> Given:
    """Return a call with other arguments, as arrays of the framework of the given ones."""
    parts = [framework_of(part) for _, (part, _) in arrays_in("", (given.args, given.kwargs))]
    other = next((each for each in parts if each not in (None, NUMPY)), None)

    def part(value: Any) -> Any:
        if other is None or framework_of(value) is not NUMPY:
            return value
        return other.from_numpy(value, as_dtype(value.dtype))

    args, kwargs = mapped(found, part)
    return replace(given, args=tuple(args), kwargs=dict(kwargs), said=said, is_decisive=is_decisive)
