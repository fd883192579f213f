"""The Pallas calls that a function makes, read from its jaxpr without running it."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from nkitools.pallas import jax_internals, source_places
from nkitools.pallas.chips import Chip
from nkitools.pallas.device_axes import Axes, abstract_mesh, axes_of
from nkitools.pallas.device_kinds import simulated_kinds
from nkitools.pallas.imports import jax_module
from nkitools.pallas.jax_types import BlockMapping, ClosedJaxpr, GridMapping, Jaxpr, Shaped, SourceInfo
from nkitools.pallas.source_places import Place


@dataclass(frozen=True)
class Operand:
    """One blocked operand of a Pallas call.

    ``block``: the shape of a block (None for a squeezed dimension). ``memory``: the name of its memory space ('' if the
    author left the choice). ``place``: the line of its index map, or of the call if there is none.
    """

    name: str
    is_output: bool
    block: tuple[int | None, ...]
    blocked: tuple[bool, ...]
    shape: tuple[int, ...]
    dtype: Any
    memory: str
    whole: bool
    buffers: int
    place: Place
    mapping: Any

    def text(self) -> str:
        """``input `x_ref` (float32 [200, 120], block (100, 60))``."""
        kind = "output" if self.is_output else "input"
        block = "" if self.whole else f", block {show_shape(self.block)}"
        return f"{kind} `{self.name}` ({self.dtype} {list(self.shape)}{block})"

    @property
    def block_sizes(self) -> tuple[int, ...]:
        """The block's sizes, a squeezed dimension counting one."""
        return tuple(1 if size is None else size for size in self.block)

    @property
    def blocks(self) -> tuple[int, ...]:
        """The number of blocks along each dimension, the last one perhaps a part."""
        return tuple(-(-size // max(block, 1)) for size, block in zip(self.shape, self.block_sizes, strict=True))

    def own_axes(self) -> list[int | None]:
        """Return for each dimension the grid index that is its block index; None where that is computed or constant."""
        jaxpr = self.mapping.index_map_jaxpr.jaxpr
        known = {each: number for number, each in enumerate(jaxpr.invars)}
        return [None if hasattr(each, "val") else known.get(each) for each in jaxpr.outvars]

    def unused_axes(self, grid: Sequence[int | None]) -> set[int]:
        """Return the dimensions of the grid on which its block does not depend."""
        jaxpr = self.mapping.index_map_jaxpr.jaxpr
        read = {id(each) for equation in jaxpr.eqns for each in equation.invars} | {id(each) for each in jaxpr.outvars}
        return {axis for axis in range(len(grid)) if id(jaxpr.invars[axis]) not in read}

    def index_map(self) -> str:
        """Return the words for the operand's index map in messages, with the function's name if it has one."""
        name = self.place.function
        named = f" `{name}`" if name.isidentifier() else ""
        return f"the index map{named} of `{self.name}`"


@dataclass(frozen=True)
class Scratch:
    """One scratch operand of a Pallas call."""

    name: str
    shape: tuple[int, ...]
    dtype: Any
    memory: str


@dataclass(frozen=True, eq=False)
class Call:
    """One Pallas call: its grid, its operands, and the jaxpr of its kernel.

    ``axes``: the axes of the ``shard_map`` that it is made in.
    """

    name: str
    place: Place
    kernel_place: Place
    grid: tuple[int | None, ...]
    operands: tuple[Operand, ...]
    prefetched: tuple[Scratch, ...]
    scratch: tuple[Scratch, ...]
    parallel: tuple[bool, ...]
    params: Mapping[str, Any]
    avals: tuple[Any, ...]
    primitive: Any
    axes: Axes = ()

    @property
    def jaxpr(self) -> Any:
        """The kernel's."""
        return self.params["jaxpr"]

    @property
    def inputs(self) -> tuple[Operand, ...]:
        """The blocked inputs."""
        return tuple(operand for operand in self.operands if not operand.is_output)

    @property
    def outputs(self) -> tuple[Operand, ...]:
        """The outputs."""
        return tuple(operand for operand in self.operands if operand.is_output)

    @property
    def vmem_limit(self) -> int | None:
        """The limit that the author gave the compiler, in bytes."""
        limit = getattr(self.params["compiler_params"], "vmem_limit_bytes", None)
        return None if limit is None else int(limit)

    @property
    def has_barrier(self) -> bool:
        """Return whether the kernel has a barrier of its own; JAX lets devices meet before any other kernel."""
        return getattr(self.params["compiler_params"], "collective_id", None) is not None and any(
            equation.primitive.name == "get_barrier_semaphore"
            for equation, _ in placed_equations(self.jaxpr, self.kernel_place)
        )

    @cached_property
    def key(self) -> str:
        """Return a key that equal calls share, so that one of them is checked for all."""
        # The jaxpr's text leaves out where it comes from, so two kernels of one text have their lines in the key.
        return f"{self.place} {self.kernel_place} {self.grid} {self.avals} {self.axes} {self.params}"

    @property
    def likeness(self) -> str:
        """Return a key that a call has in every trace of its function; different calls rarely share it."""
        kernel = getattr(self.jaxpr.debug_info, "func_src_info", "")
        return f"{kernel} {self.name} {self.grid} {[(each.shape, str(each.dtype)) for each in self.avals]}"

    def as_function(self, **compiler_params: int) -> Callable[..., Any]:
        """Return a function of the call's operands that makes this call alone, not interpreted."""
        params = {**self.params, "interpret": False}
        if compiler_params:
            own = params["compiler_params"] or jax_module("jax.experimental.pallas.tpu").CompilerParams()
            params["compiler_params"] = replace(own, **compiler_params)
        return lambda *operands: self.primitive.bind(*operands, **params)


def show_shape(shape: Iterable[int | None]) -> str:
    """``(100, 60)``, ``(None, 8, 128)``."""
    sizes = ", ".join(str(size) for size in shape)
    return f"({sizes},)" if "," not in sizes else f"({sizes})"


@contextlib.contextmanager
def compiling_for(chip: Chip, axes: Axes = ()) -> Iterator[None]:
    """Trace and lower as if for ``chip``, or for ``axes`` of them, ``pltpu.get_tpu_info`` included."""
    with jax_module("jax.sharding").use_abstract_mesh(abstract_mesh(chip, axes)), simulated_kinds(chip):
        yield


def pallas_calls(closed_jaxpr: ClosedJaxpr) -> list[Call]:
    """Return the Pallas calls in a jaxpr and in those within it, in order, equal ones once."""
    calls: dict[str, Call] = {}
    for equation, axes in sharded_equations(closed_jaxpr.jaxpr):
        if equation.primitive.name == "pallas_call":
            call = call_of(equation.params, [var.aval for var in equation.invars], equation.source_info)
            call = replace(call, primitive=equation.primitive, axes=axes)
            calls.setdefault(call.key, call)
    return list(calls.values())


def as_seen(calls: Iterable[Call]) -> list[Call]:
    """Pallas calls that were come by while they ran, as ones that can be lowered; those over a mesh of cores cannot."""
    if jax_internals.moved(jax_internals.CALLS):
        return []
    primitive = jax_internals.of(jax_internals.PALLAS_CALL, "pallas_call_p")
    return [replace(call, primitive=primitive) for call in calls if call.params.get("mesh") is None]


def equations(jaxpr: Jaxpr) -> Iterator[Any]:
    """Every equation of a jaxpr and of the jaxprs that its equations hold; kernels are left to themselves."""
    return (equation for equation, _ in sharded_equations(jaxpr))


def sharded_equations(jaxpr: Jaxpr, axes: Axes = ()) -> Iterator[tuple[Any, Axes]]:
    """Every equation as of :func:`equations`, with the axes of the ``shard_map`` around it."""
    for equation in jaxpr.eqns:
        yield equation, axes
        if equation.primitive.name != "pallas_call":
            within = axes_of(equation.params["mesh"]) if equation.primitive.name == "shard_map" else axes
            for inner in _jaxprs_in(equation.params.values()):
                yield from sharded_equations(inner, within)


def placed_equations(jaxpr: Jaxpr, place: Place) -> Iterator[tuple[Any, Place]]:
    """Yield every equation of a kernel with its line; inside JAX's own functions the line of the call."""
    for equation in jaxpr.eqns:
        here = source_places.of_source(equation.source_info, place)
        yield equation, here
        for inner in _jaxprs_in(equation.params.values()):
            yield from placed_equations(inner, here)


def _jaxprs_in(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if hasattr(value, "eqns"):
            yield value
        elif hasattr(value, "jaxpr") and hasattr(value.jaxpr, "eqns"):
            yield value.jaxpr
        elif isinstance(value, tuple | list):
            yield from _jaxprs_in(value)


def call_of(params: Mapping[str, Any], avals: Iterable[Any], source_info: SourceInfo | None = None) -> Call:
    """Return the Pallas call with those parameters of its primitive."""
    mapping, jaxpr = params["grid_mapping"], params["jaxpr"]
    kernel_place = source_places.of_function(jaxpr.debug_info, source_places.of_source(source_info))
    place = source_places.of_source(source_info, kernel_place)
    names = _names(jaxpr, mapping)
    first, last = mapping.num_index_operands, mapping.num_index_operands + len(mapping.block_mappings)
    refs = [var.aval for var in jaxpr.invars]
    return Call(
        name=params.get("name") or source_places.of_function(jaxpr.debug_info).function or "kernel",
        place=place,
        kernel_place=kernel_place,
        grid=tuple(size if isinstance(size, int) else None for size in mapping.grid),
        operands=tuple(
            _operand(block, names[first + index], index >= mapping.num_inputs, place)
            for index, block in enumerate(mapping.block_mappings)
        ),
        prefetched=tuple(_scratch(name, ref) for name, ref in zip(names[:first], refs[:first], strict=True)),
        scratch=tuple(_scratch(name, ref) for name, ref in zip(names[last:], refs[last:], strict=True)),
        parallel=tuple(each == "parallel" for each in semantics(params["compiler_params"], mapping)),
        params=params,
        avals=tuple(avals),
        primitive=None,
    )


def _names(jaxpr: Jaxpr, mapping: GridMapping) -> list[str]:
    """Return the kernel's names of its refs; for refs in ``*refs`` their positions in the call's lists."""
    known = jaxpr.debug_info.arg_names or ()
    counts = {
        "scalar": mapping.num_index_operands,
        "in_specs": mapping.num_inputs,
        "out_specs": len(mapping.block_mappings) - mapping.num_inputs,
    }
    places = [f"{what}[{index}]" for what, count in counts.items() for index in range(count)]
    places += [f"scratch_shapes[{index}]" for index in range(len(jaxpr.invars) - len(places))]
    return [
        known[index] if index < len(known) and known[index] and "[" not in known[index] else place
        for index, place in enumerate(places)
    ]


def _operand(block: BlockMapping, name: str, is_output: bool, call: Place) -> Operand:
    sizes = tuple(_size(dimension) for dimension in block.block_shape)
    shape = tuple(block.array_aval.shape)
    return Operand(
        name=name,
        is_output=is_output,
        block=sizes,
        blocked=tuple(type(dimension).__name__ in ("Blocked", "int") for dimension in block.block_shape),
        shape=shape,
        dtype=block.array_aval.dtype,
        memory=memory_of(block.transformed_block_aval),
        whole=sizes == shape,
        buffers=getattr(block.pipeline_mode, "buffer_count", 2),
        place=source_places.of_function(block.index_map_jaxpr.jaxpr.debug_info, call),
        mapping=block,
    )


def _size(dimension: Any) -> int | None:
    """Return the size of a block dimension; None if it is squeezed."""
    if dimension is None or type(dimension).__name__ == "Squeezed":
        return None
    return int(getattr(dimension, "block_size", dimension))


def _scratch(name: str, ref: Shaped) -> Scratch:
    return Scratch(name, tuple(ref.shape), ref.dtype, memory_of(ref))


def memory_of(ref: Shaped) -> str:
    """``vmem``, ``smem``, ``any``, ``hbm``, ``semaphore``; '' for the default."""
    space = str(getattr(ref, "memory_space", None) or "").lower().rpartition(".")[2]
    return {"none": "", "default": "", "semaphore_mem": "semaphore", "vmem_shared": "vmem"}.get(space, space)


def semantics(compiler_params: Hashable, mapping: GridMapping) -> tuple[str, ...]:
    """Return ``parallel`` for each dimension of the grid that may run in any order, else ``arbitrary``.

    The author's ``dimension_semantics`` leave out the dimensions of ``vmap``, which JAX lowers as parallel.
    """
    said = iter(getattr(compiler_params, "dimension_semantics", None) or ())
    kinds = ["parallel" if at in mapping.vmapped_dims else next(said, "") for at in range(len(mapping.grid))]
    texts = [str(getattr(kind, "value", kind)).lower() for kind in kinds]
    return tuple("parallel" if text.endswith("parallel") else "arbitrary" for text in texts)


def array_bytes(call: Call) -> int:
    """Return the bytes of the whole arrays that a call reads and writes."""
    return sum(math.prod(each.shape) * max(int(each.dtype.itemsize), 1) for each in call.operands)


def points(call: Call) -> int:
    """Return the number of points of the grid; a size that is unknown before the run counts as 1."""
    return math.prod(size or 1 for size in call.grid)
