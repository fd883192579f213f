"""Random view operations, each with what NumPy says about it."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from hypothesis import strategies as st

from nkitools.chip.tensor import DynamicSlice, NkiTensor
from tests.chip.models import Modelled, Numbers, refused


def kept_index(view: NkiTensor, items: list[Any]) -> list[Any]:
    """NumPy's index for the documented rule: integers keep the partitions, and the least number of dimensions."""
    ndim = len(view.shape)
    kept = ndim - sum(isinstance(item, int) for item in items)
    index = list(items)
    if view.on_chip and index and isinstance(index[0], int):
        index[0] = slice(index[0] % view.shape[0], index[0] % view.shape[0] + 1)
        kept += 1
    least = 2 if view.on_chip else 1
    for dim in reversed(range(len(index))):
        if kept < least and isinstance(index[dim], int):
            first = index[dim] % view.shape[dim]
            index[dim] = slice(first, first + 1)
            kept += 1
    return index


@st.composite
def bounds(draw: st.DrawFn, size: int) -> tuple[int, int]:
    """0 <= start < stop <= size."""
    start = draw(st.integers(0, size - 1))
    return start, draw(st.integers(start + 1, size))


@st.composite
def item_of(draw: st.DrawFn, size: int) -> tuple[Any, Any]:
    """An index of a dimension: as a kernel's author writes it, and as NumPy takes it."""
    start, stop = draw(bounds(size))
    step = draw(st.sampled_from((None, 1, 2, 3)))
    match draw(st.sampled_from(("int", "negative", "slice", "open", "negative slice", "ds", "numpy"))):
        case "int":
            return start, start
        case "numpy":
            return np.int64(start), start
        case "negative":
            return start - size, start
        case "slice":
            return slice(start, stop, step), slice(start, stop, step)
        case "open":
            item = draw(st.sampled_from((slice(None), slice(start, None), slice(None, stop), slice(None, None, step))))
            return item, item
        case "negative slice":
            last = stop - size if stop < size else None
            return slice(start - size, last, step), slice(start, stop, step)
        case _:
            return DynamicSlice(start, stop - start), slice(start, stop)


@st.composite
def keys(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, list[Any]]:
    """A key and its indices as NumPy takes them (before the rule on what an integer keeps)."""
    count = draw(st.integers(0, len(shape)))
    dots = draw(st.booleans())
    before = draw(st.integers(0, count)) if dots else count
    positions = [*range(before), *range(len(shape) - (count - before), len(shape))]
    chosen = {dim: draw(item_of(shape[dim])) for dim in positions}
    index = [chosen[dim][1] if dim in chosen else slice(None) for dim in range(len(shape))]
    key = [chosen[dim][0] for dim in positions]
    if dots or not key:
        key.insert(before, Ellipsis)
    return (key[0] if len(key) == 1 and draw(st.booleans()) else tuple(key)), index


def _indexed(draw: st.DrawFn, at: Modelled) -> Modelled:
    key, index = draw(keys(at.view.shape))
    return Modelled(at.view[key], at.model[tuple(kept_index(at.view, index))])


def _sliced(draw: st.DrawFn, at: Modelled) -> Modelled:
    dim = draw(st.integers(0, at.view.ndim - 1))
    start, stop = draw(bounds(at.view.shape[dim]))
    step = draw(st.integers(1, 3))
    index = (*[slice(None)] * dim, slice(start, stop, step))
    return Modelled(at.view.slice(dim, start, stop, step), at.model[index])


def _selected(draw: st.DrawFn, at: Modelled) -> Modelled:
    dim = draw(st.integers(0, at.view.ndim - 1))
    index = draw(st.integers(0, at.view.shape[dim] - 1))
    wanted = kept_index(at.view, [slice(None)] * dim + [index])
    return Modelled(at.view.select(dim, index), at.model[tuple(wanted)])


def _permuted(draw: st.DrawFn, at: Modelled) -> Modelled:
    kept = 1 if at.view.on_chip else 0
    order = (*range(kept), *draw(st.permutations(range(kept, at.view.ndim))))
    return Modelled(at.view.permute(order), at.model.transpose(*order, at.view.ndim))


def _expanded(draw: st.DrawFn, at: Modelled) -> Modelled:
    dim = draw(st.integers(1 if at.view.on_chip else 0, at.view.ndim))
    return Modelled(at.view.expand_dim(dim), np.expand_dims(at.model, dim))


def _broadcast(draw: st.DrawFn, at: Modelled) -> Modelled:
    at = _expanded(draw, at) if at.view.ndim < 4 else at
    kept = 1 if at.view.on_chip else 0
    dims = [dim for dim in range(kept, at.view.ndim) if at.view.shape[dim] == 1]
    if not dims:
        return at
    dim, size = draw(st.sampled_from(dims)), draw(st.integers(1, 4))
    shape = list(at.model.shape)
    shape[dim] = size
    return Modelled(at.view.broadcast(dim, size), np.broadcast_to(at.model, shape))


def _squeezed(draw: st.DrawFn, at: Modelled) -> Modelled:
    kept = 1 if at.view.on_chip else 0
    dims = [dim for dim in range(kept, at.view.ndim) if at.view.shape[dim] == 1]
    if not dims or at.view.ndim <= 1 + kept:
        return at
    dim = draw(st.sampled_from(dims))
    return Modelled(at.view.squeeze_dim(dim), at.model.squeeze(dim))


def splits(size: int) -> list[tuple[int, ...]]:
    """The ways to write a size as a product of up to three sizes."""
    pairs = [(first, size // first) for first in range(1, size + 1) if size % first == 0]
    triples = [(first, *rest) for first, second in pairs for rest in splits_in_two(second)]
    return [(size,), *pairs, *triples]


def splits_in_two(size: int) -> list[tuple[int, int]]:
    """The ways to write a size as a product of two."""
    return [(first, size // first) for first in range(1, size + 1) if size % first == 0]


def _reshape_or_refuse(at: Modelled, make: Any, sizes: tuple[int, ...]) -> Modelled:
    """``make()``, where NumPy needs no copy for it; else it must be refused."""
    expected: Numbers = at.model.reshape(*sizes, at.model.shape[-1])
    if not np.may_share_memory(expected, at.model):
        with refused("NK109"):
            make()
        return at
    return Modelled(make(), expected)


def _split(draw: st.DrawFn, at: Modelled) -> Modelled:
    dim = draw(st.integers(1 if at.view.on_chip else 0, at.view.ndim - 1))
    parts = draw(st.sampled_from(splits(at.view.shape[dim])))
    open_at = draw(st.integers(0, len(parts)))
    given = tuple(-1 if position == open_at else size for position, size in enumerate(parts))
    sizes = (*at.view.shape[:dim], *parts, *at.view.shape[dim + 1 :])
    return _reshape_or_refuse(at, lambda: at.view.reshape_dim(dim, given), sizes)


def _flattened(draw: st.DrawFn, at: Modelled) -> Modelled:
    kept = 1 if at.view.on_chip else 0
    first = draw(st.integers(kept, at.view.ndim - 1))
    last = draw(st.integers(first, at.view.ndim - 1))
    merged = int(np.prod(at.view.shape[first : last + 1]))
    sizes = (*at.view.shape[:first], merged, *at.view.shape[last + 1 :])
    return _reshape_or_refuse(at, lambda: at.view.flatten_dims(first, last), sizes)


def _reshaped(draw: st.DrawFn, at: Modelled) -> Modelled:
    kept = at.view.shape[:1] if at.view.on_chip else ()
    sizes = (*kept, *draw(st.sampled_from(splits(int(np.prod(at.view.shape[len(kept) :]))))))
    return _reshape_or_refuse(at, lambda: at.view.reshape(sizes), sizes)


def _rearranged(draw: st.DrawFn, at: Modelled) -> Modelled:
    """Each dimension split into named ones, these reordered, neighbours merged: each step is NumPy's."""
    kept = 1 if at.view.on_chip else 0
    names = map(str, itertools.count())
    source: list[tuple[str, ...]] = []
    sizes: dict[str, int] = {}
    for dim, size in enumerate(at.view.shape):
        parts = (size,) if dim < kept else draw(st.sampled_from(splits(size)))
        group = tuple(itertools.islice(names, len(parts)))
        source.append(group)
        sizes.update(zip(group, parts, strict=True))
    before = list(sizes)
    after = before[:kept] + list(draw(st.permutations(before[kept:])))
    target: list[tuple[str, ...]] = []
    for name in after:
        if len(target) > kept and draw(st.booleans()):
            target[-1] = (*target[-1], name)
        else:
            target.append((name,))
    fixed = {name: sizes[name] for group in source for name in group[1:]}
    order = [before.index(name) for name in after]
    moved = at.model.reshape(*sizes.values(), at.model.shape[-1]).transpose(*order, len(order))
    expected = moved.reshape(*[int(np.prod([sizes[name] for name in group])) for group in target], moved.shape[-1])

    def make() -> NkiTensor:
        ungrouped = [group if len(group) > 1 else group[0] for group in target]
        return at.view.rearrange(tuple(source), tuple(ungrouped), fixed)

    if not np.may_share_memory(moved, expected):
        with refused("NK109"):
            make()
        return at
    return Modelled(make(), expected)


def _patterned(draw: st.DrawFn, at: Modelled) -> Modelled:
    """An access pattern from where the view begins, in bounds, with repeats and overlaps."""
    storage, itemsize = at.view.storage, at.view.dtype.itemsize
    first = int(at.model.reshape(-1)[0]) // itemsize
    if storage.free_bytes % itemsize:
        return at
    free = storage.free_bytes // itemsize
    room = free - first % free if at.view.on_chip else storage.nbytes // itemsize - first
    pairs: list[list[int]] = []
    for _ in range(draw(st.integers(1, 3))):
        step = draw(st.integers(0, max(1, room // 2)))
        count = draw(st.integers(1, 4 if step == 0 else min(4, (room - 1) // step + 1)))
        pairs.append([step, count])
        room -= step * (count - 1)
    if at.view.on_chip:
        pairs.insert(0, [free, draw(st.integers(1, storage.shape[0] - first // free))])
    numbers = np.arange(first * itemsize, storage.nbytes)
    strides = (*(step * itemsize * numbers.itemsize for step, _ in pairs), numbers.itemsize)
    shape = (*(count for _, count in pairs), itemsize)
    return Modelled(at.view.ap(pairs), np.lib.stride_tricks.as_strided(numbers, shape, strides))


STEPS = {
    "index": _indexed,
    "slice": _sliced,
    "select": _selected,
    "permute": _permuted,
    "expand_dim": _expanded,
    "broadcast": _broadcast,
    "squeeze_dim": _squeezed,
    "reshape_dim": _split,
    "flatten_dims": _flattened,
    "reshape": _reshaped,
    "rearrange": _rearranged,
    "ap": _patterned,
}


def recast_or_refuse(at: Modelled, dtype: Any) -> Modelled:
    """``view(dtype)`` where each new element is a whole, consecutive stretch of bytes at a multiple of its size."""
    last = at.model.reshape(*at.model.shape[:-2], -1)
    consecutive = bool((np.diff(last, axis=-1) == 1).all())
    if dtype.itemsize == at.view.dtype.itemsize:
        return Modelled(at.view.view(dtype), at.model)
    if last.shape[-1] % dtype.itemsize == 0 and consecutive:
        expected = last.reshape(*last.shape[:-1], last.shape[-1] // dtype.itemsize, dtype.itemsize)
        if not (expected[..., 0] % dtype.itemsize).any():
            return Modelled(at.view.view(dtype), expected)
    with refused("NK109", "view("):
        at.view.view(dtype)
    return at


def take(draw: st.DrawFn, at: Modelled, count: int, casts: tuple[Any, ...] = ()) -> Modelled:
    """Some view steps one after the other, with reinterpretations among them."""
    for _ in range(count):
        if at.view.ndim > 6:
            return at
        name = draw(st.sampled_from((*STEPS, "view") if casts else tuple(STEPS)))
        at = recast_or_refuse(at, draw(st.sampled_from(casts))) if name == "view" else STEPS[name](draw, at)
    return at
