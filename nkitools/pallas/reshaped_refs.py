"""References under another shape (``ref.reshape``), in TPU interpretation: accesses by them, as accesses to boxes.

JAX's interpreter takes indices alone, and none with a stride of 0, which reads one element repeatedly. An access behind
such a change is mostly one to a box of the buffer: then it is made as that, and the value gets the shape that the
kernel has asked for.
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


class Box(NamedTuple):
    """The box that an access goes to: ``bounds`` are start and size along each axis.

    ``shape`` is that of the value, whose elements are those at ``places`` of the box, None for all in their order.
    """

    bounds: tuple[tuple[int, int], ...]
    shape: tuple[int, ...]
    places: Array | None


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
        transforms = [each for each in args[_TRANSFORMS] if not _says_nothing(each)]
        first = next((at for at, each in enumerate(transforms) if _is_beyond(each)), None)
        if first is None:
            return theirs(*args, **named)
        steps = [_step(each) for each in transforms]
        view = _view(_shape_of(*args[1:_TRANSFORMS]), tuple(steps[:first]))
        box = _box(view, tuple(steps[first:]))
        if values and box.places is not None:
            raise NotImplementedError(f"a write to a reference of shape {view} under another shape, in another order")
        given = list(args)
        given[_TRANSFORMS] = (*transforms[:first], _indexer(box.bounds, view))
        for at in values:
            given[at] = None if args[at] is None else np.asarray(args[at]).reshape([size for _, size in box.bounds])
        result = theirs(*given, **named)
        if not isinstance(result, tuple):
            return result
        value = np.asarray(result[1])
        return result[0], (value if box.places is None else value.ravel()[box.places]).reshape(box.shape)

    return access


def _is_beyond(transform: Any) -> bool:
    """Return whether JAX's interpreter does not take a change."""
    return _is_reshape(transform) or any(getattr(each, "stride", 1) == 0 for each in getattr(transform, "indices", ()))


def _says_nothing(transform: Any) -> bool:
    """Return whether a change is an annotation (``pltpu.annotate``), which leaves the reference as it is."""
    return type(transform).__name__ == "AccessAssumptionTransform"


def _is_reshape(transform: Any) -> bool:
    return type(transform).__name__ == "ReshapeTransform"


def _step(transform: Any) -> Step:
    if _is_reshape(transform):
        return Step(tuple(transform.shape), ())
    if not hasattr(transform, "indices"):
        raise NotImplementedError(f"a reference under another shape and {type(transform).__name__}")
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
            elements = _indexed(elements, indices)
    return elements


def _indexed(elements: Array, indices: Iterable[Index]) -> Array:
    axis = 0
    for each in indices:
        wanted = each if isinstance(each, int) else each[0] + np.arange(each[1]) * each[2]
        elements = np.take(elements, wanted, axis)
        axis += not isinstance(each, int)
    return elements


@lru_cache(64)
def _view(shape: tuple[int, ...], steps: tuple[Step, ...]) -> tuple[int, ...]:
    """Return the shape of a view by indices."""
    return _transformed(np.broadcast_to(np.int8(0), shape), steps).shape


@lru_cache(64)
def _box(view: tuple[int, ...], steps: tuple[Step, ...]) -> Box:
    """Return the box that the changes leave of a view. NotImplementedError where what they leave is no box."""
    whole = np.arange(math.prod(view)).reshape(view)
    wanted = _transformed(whole, steps)
    places = np.unravel_index(wanted.ravel(), view)
    bounds = tuple((int(each.min()), int(each.max() - each.min() + 1)) for each in places)
    inside = whole[tuple(slice(start, start + size) for start, size in bounds)].ravel()
    if np.array_equal(inside, wanted.ravel()):
        return Box(bounds, wanted.shape, None)
    if not np.array_equal(inside, np.unique(wanted)):
        raise NotImplementedError(f"a reference of shape {view} under another shape, whose elements are no box of it")
    return Box(bounds, wanted.shape, np.searchsorted(inside, wanted.ravel()))


def _indexer(box: Iterable[tuple[int, int]], view: tuple[int, ...]) -> Any:
    """Return JAX's index of a box."""
    slices = tuple(jax_module("jax.experimental.pallas").ds(start, size) for start, size in box)
    return _indexers()(slices, view, ())


@cache
def _indexers() -> Any:
    return jax_internals.of(jax_internals.INDEXING, "NDIndexer")
