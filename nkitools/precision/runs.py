"""One kernel call in one precision: on copies of its arrays, and what it made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nkitools.chip.argument_types import Argument
from nkitools.chip.full_precision_shadow import digits_of
from nkitools.chip.numerics import Array
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.twin_storage import in_float64 as with_float64_twins
from nkitools.launch.frameworks import NUMPY, Framework, framework_of
from nkitools.launch.launch import Launch
from nkitools.launch.nested_arguments import mapped, parts_of
from nkitools.launch.programs import run_launch
from nkitools.precision.difference import exact
from nkitools.precision.shared_memory import Sharer, changed_together, copied_together, sharing
from nkitools.record.prints.print_display import showing_prints
from nkitools.record.rows import Access
from nkitools.record.run import Run


@dataclass(frozen=True)
class Values:
    """A tensor after a run: its values in float64, and its dtype."""

    array: Array
    dtype: str


@dataclass(frozen=True)
class Half:
    """A run in one precision: its outputs and its arguments by name, and which of these it changed, and returns.

    ``accesses``: the places of the arguments in the record, by name.
    """

    run: Run
    outputs: dict[str, Values]
    arguments: dict[str, Values]
    changed: frozenset[str]
    returned: frozenset[str]
    accesses: Mapping[str, Access] = field(default_factory=dict)


def run_half(launch: Launch, precision: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Half:
    """Run on copies of the arrays, so that nothing that the kernel writes reaches the caller's.

    ``precision``: ``precise``, ``full``, or ``float64``, a shadow run, in which all floats are float64 and none is
    rounded, whatever their dtypes say.
    """
    with with_float64_twins() if precision == "float64" else nullcontext():
        return _run_half(launch, precision, args, kwargs)


def _run_half(launch: Launch, precision: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Half:
    tensors: dict[str, NkiTensor] = {}
    before: dict[str, Array] = {}

    def entering(tensor: NkiTensor) -> Any:
        if tensor.name not in tensors:
            tensors[tensor.name], before[tensor.name] = tensor, exact(tensor.array)
        return tensor if launch.wrap is None else launch.wrap(tensor)

    args, kwargs = copied((args, kwargs))
    with showing_prints(None):  # a kernel that runs twice would print everything twice
        run = run_launch(replace(launch, precision=precision, wrap=entering, echo=None), args, kwargs)
    outputs = dict(arrays_in("output", run.outputs))
    objects = {id(value) for value, _ in outputs.values()}
    arguments = {name: Values(exact(digits_of(tensor)), tensor.dtype.name) for name, tensor in tensors.items()}
    changed = {
        name for name, values in arguments.items() if not np.array_equal(values.array, before[name], equal_nan=True)
    }
    return Half(
        run,
        {name: Values(exact(array), str(array.dtype)) for name, (_, array) in outputs.items()},
        arguments,
        frozenset(changed),
        frozenset(name for name, tensor in tensors.items() if id(tensor.storage.origin) in objects),
        {
            name: Access(tensor.storage.id, tensor.layout, tensor.byte_offset, written=False)
            for name, tensor in tensors.items()
        },
    )


def arrays_in(name: str, value: Argument) -> list[tuple[str, tuple[Any, Array]]]:
    """Return the arrays in a value or its containers, by their places, as they are and as NumPy sees them."""
    known = ((place, part, framework_of(part)) for place, part in parts_of(value, name))
    return [(place, (part, framework.to_numpy(place, part))) for place, part, framework in known if framework]


def copied(value: Argument) -> Any:
    """Return a container with copies of its arrays. Arrays that share memory, wholly or in part, share it there too."""
    return _changed(value, _copy, copied_together)


def in_numpy(value: Argument) -> Any:
    """Return the same with NumPy's arrays in place of those of other frameworks, which share their memory."""
    return _changed(value, lambda framework, each: framework.to_numpy("argument", each), lambda group: {})


def in_float64(value: Argument) -> Any:
    """Return the same with floating-point arrays in float64 (jax's in float32 where it has no more)."""
    return _changed(value, _float64, _float64_together)


def _changed(
    value: Argument, change: Callable[[Framework, Any], Any], together: Callable[[list[Sharer]], dict[int, Any]]
) -> Any:
    arrays = [part for _, part in parts_of(value) if framework_of(part) is not None]
    done = {key: new for group in sharing(arrays) for key, new in together(group).items()}

    def part(each: Argument) -> Any:
        framework = framework_of(each)
        if framework is None:
            return each
        if id(each) not in done:
            done[id(each)] = change(framework, each)
        return done[id(each)]

    return mapped(value, part)


def _float64_together(group: list[Sharer]) -> dict[int, Any]:
    """Return the arrays of a group in float64; those of different dtypes cannot share what is as wide for all."""
    if not any(_is_float(each.array) for each in group):
        return copied_together(group)
    found: dict[int, Any] = {}
    for dtype in {each.array.dtype for each in group}:
        mine = [each for each in group if each.array.dtype == dtype]
        for alike in sharing(each.own for each in mine):
            found |= (changed_together(alike, _wide) if _is_float(mine[0].array) else copied_together(alike)) or {}
    return found


def _wide(array: Array) -> Array:
    return array.astype(np.float64)


def _is_float(array: Array) -> bool:
    return array.dtype.kind not in "biu" and array.dtype.names is None


def _copy(framework: Framework, value: Any) -> Any:
    if framework is NUMPY:
        copy = value.copy()
        copy.flags.writeable = value.flags.writeable
        return copy
    return value.detach().clone() if framework.name == "torch" else value


def _float64(framework: Framework, value: Any) -> Any:
    if framework.name == "torch":
        value = value.detach().clone()
        return value.double() if value.is_floating_point() else value
    if framework.name == "jax":
        import jax.numpy as jnp

        # float64 where jax_enable_x64 is on, else float32
        return value.astype(jnp.result_type(float)) if jnp.issubdtype(value.dtype, jnp.floating) else value
    return _wide(value) if _is_float(value) else value.copy()
