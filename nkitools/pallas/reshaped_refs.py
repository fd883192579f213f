"""References under another shape (``ref.reshape``), in TPU interpretation: accesses by them, as accesses to boxes.

JAX's interpreter takes indices alone. An access behind a change of shape is mostly one to a box of the buffer, in its
order: then it is made as that, and the value gets the shape that the kernel has asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cache, lru_cache, wraps
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from nkitools.pallas import jax_internals
from nkitools.pallas.imports import jax_module
from nkitools.pallas.jax_types import Array

Index: TypeAlias = int | tuple[int, int, int]  # one element, or start, size and stride
_VALUES = {"get": (), "store": (6,), "swap": (6, 7)}  # the places of values among the parameters of an access
_TRANSFORMS = 5  # the place of the transforms, behind token, device, core, memory and buffer


class Step(NamedTuple):
    """One change of a reference: another ``shape``, or else ``indices``."""

    shape: tuple[int, ...] | None
    indices: tuple[Index, ...]


def replacements() -> dict[tuple[Any, str], Any]:
    """Return what takes the place of the interpreter's accesses, by module and name."""
    interpreter = jax_module(jax_internals.INTERPRETER)
    ours: dict[tuple[Any, str], Any] = {}
    for name, values in _VALUES.items():
        theirs = getattr(interpreter, name)
        ours[interpreter, name] = _boxed(theirs, values)
        ours[interpreter, name].__wrapped__ = _boxed(theirs.__wrapped__, values)  # JAX's copies call this one
    return ours


def _boxed(theirs: Callable[..., Any], values: Iterable[int]) -> Any:
    """Return an access that makes those behind a change of shape as accesses to boxes."""

    @wraps(theirs)
    def access(*args: Any, **named: Any) -> Any:
        transforms = list(args[_TRANSFORMS])
        first = next((at for at, each in enumerate(transforms) if _is_reshape(each)), None)
        if first is None:
            return theirs(*args, **named)
        steps = [_step(each) for each in transforms]
        view = _view(_shape_of(*args[1:_TRANSFORMS]), tuple(steps[:first]))
        box, shape = _box(view, tuple(steps[first:]))
        given = list(args)
        given[_TRANSFORMS] = (*transforms[:first], _indexer(box, view))
        for at in values:
            given[at] = None if args[at] is None else np.asarray(args[at]).reshape([size for _, size in box])
        result = theirs(*given, **named)
        return (result[0], np.asarray(result[1]).reshape(shape)) if isinstance(result, tuple) else result

    return access


def _is_reshape(transform: Any) -> bool:
    return type(transform).__name__ == "ReshapeTransform"


def _step(transform: Any) -> Step:
    if _is_reshape(transform):
        return Step(tuple(transform.shape), ())
    each = (
        (int(index.start), int(index.size), int(index.stride)) if hasattr(index, "stride") else int(index)
        for index in transform.indices
    )
    return Step(None, tuple(each))


def _shape_of(device: Any, core: Any, memory: Any, buffer: Any) -> tuple[int, ...]:
    """Return the shape of a buffer."""
    interpreter = jax_module(jax_internals.INTERPRETER)
    space = interpreter.TPU_MEMORY_SPACE_NAMES[int(memory)]
    of_core = interpreter._local_core_id_or_zero_if_hbm(int(core), space)
    content: Array = interpreter._get_shared_memory().mem[space, int(buffer), int(device), of_core].content
    return tuple(content.shape)


def _transformed(elements: Array, steps: Iterable[Step]) -> Array:
    """Return the elements that are left behind the changes. NotImplementedError where a change does not fit."""
    for shape, indices in steps:
        if shape is not None:
            if math.prod(shape) != elements.size:
                raise NotImplementedError(f"a reference of shape {elements.shape} under shape {shape}")
            elements = elements.reshape(shape)
        else:
            elements = elements[tuple(each if isinstance(each, int) else _slice(*each) for each in indices)]
    return elements


def _slice(start: int, size: int, stride: int) -> slice:
    return slice(start, start + size * stride, stride)


@lru_cache(256)
def _view(shape: tuple[int, ...], steps: tuple[Step, ...]) -> tuple[int, ...]:
    """Return the shape of a view by indices."""
    return _transformed(np.broadcast_to(np.int8(0), shape), steps).shape


@lru_cache(256)
def _box(view: tuple[int, ...], steps: tuple[Step, ...]) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...]]:
    """Return start and size of the box that the changes leave of a view, and the shape that they give it.

    NotImplementedError where what they leave is no box in its order.
    """
    whole = np.arange(math.prod(view)).reshape(view)
    wanted = _transformed(whole, steps)
    places = np.unravel_index(wanted.ravel(), view)
    box = tuple((int(each.min()), int(each.max() - each.min() + 1)) for each in places)
    inside = whole[tuple(slice(start, start + size) for start, size in box)]
    if not np.array_equal(inside.ravel(), wanted.ravel()):
        raise NotImplementedError(f"a reference of shape {view} under another shape, whose elements are no box of it")
    return box, wanted.shape


def _indexer(box: Iterable[tuple[int, int]], view: tuple[int, ...]) -> Any:
    """Return JAX's index of a box."""
    slices = tuple(jax_module("jax.experimental.pallas").ds(start, size) for start, size in box)
    return _indexers()(slices, view, ())


@cache
def _indexers() -> Any:
    return jax_internals.of(jax_internals.INDEXING, "NDIndexer")
