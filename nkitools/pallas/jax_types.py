"""The parts of JAX's objects that nkitools uses, as types; JAX itself is imported only to run a function."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from enum import Enum
from types import EllipsisType
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
DType: TypeAlias = np.dtype[Any]
DTypeLike: TypeAlias = str | type | DType
Ranges: TypeAlias = tuple[int | slice, ...]  # the accessed elements of a buffer; dimensions that are left out are whole
BufferKey: TypeAlias = tuple[Any, ...]
Thread: TypeAlias = int | tuple[int, int]  # a core by its number among all devices, or by its device and number


class Shaped(Protocol):
    """An array, or the description of one."""

    @property
    def shape(self) -> Any:
        """The sizes of its dimensions."""

    @property
    def dtype(self) -> Any:
        """The dtype of NumPy, or one of JAX's own."""


# What functions take and give: arrays, settings, and trees of both.
Argument: TypeAlias = Shaped | Hashable | Sequence[Any] | Mapping[Any, Any]


class DebugInfo(Protocol):
    """The source of a jaxpr: its function's name and line, and its arguments' names."""

    func_src_info: str
    arg_names: Sequence[str] | None


class SourceInfo(Protocol):
    """The origin of an equation."""

    traceback: Any


class Variable(Protocol):
    """An operand of an equation or of a jaxpr."""

    aval: Shaped


class Primitive(Protocol):
    """An operation of JAX."""

    name: str
    multiple_results: bool
    bind: Callable[..., Any]


class Equation(Protocol):
    """One operation of a jaxpr."""

    primitive: Primitive
    params: Mapping[str, Any]
    invars: Sequence[Variable]
    outvars: Sequence[Variable]
    source_info: SourceInfo


class Jaxpr(Protocol):
    """A traced function."""

    eqns: Sequence[Equation]
    invars: Sequence[Variable]
    outvars: Sequence[Variable]
    constvars: Sequence[Variable]
    debug_info: DebugInfo


class ClosedJaxpr(Protocol):
    """A traced function with its constants."""

    jaxpr: Jaxpr
    consts: Sequence[Any]


class BlockMapping(Protocol):
    """A block spec of a Pallas call, as tracing leaves it."""

    block_shape: Sequence[Any]
    array_aval: Shaped
    transformed_block_aval: Shaped
    pipeline_mode: Any
    index_map_jaxpr: ClosedJaxpr


class GridMapping(Protocol):
    """The grid of a Pallas call and its operands."""

    grid: Sequence[Any]
    vmapped_dims: Sequence[int]
    num_index_operands: int
    num_inputs: int
    block_mappings: Sequence[BlockMapping]


class DeviceMesh(Protocol):
    """A mesh of devices, or the description of one."""

    @property
    def shape(self) -> Mapping[Any, int]:
        """The sizes of its axes by their names."""


class Device(Protocol):
    """A device that JAX sees."""

    platform: str
    device_kind: str


class Dma(Protocol):
    """A DMA of TPU interpretation."""

    id: int
    source_info: SourceInfo
    state: Enum
    src_device_id: int
    src_local_core_id: int
    src_global_core_id: int
    dst_device_id: int
    dst_buffer_id: int
    src_transforms: Sequence[Any]
    dst_transforms: Sequence[Any]
    virtual_device_id: int  # its entry in vector clocks
    clock: Any


class Memory(Protocol):
    """The watched memory of TPU interpretation."""

    mem: dict[Any, Any]
    num_cores: int
    num_cores_per_device: int

    def spoil(self, key: BufferKey, *, adversely: bool = False) -> None:
        """Make a buffer as undefined as when it was allocated."""


class Ref(Protocol):
    """A reference to memory in a kernel."""

    def __getitem__(self, index: Ranges | EllipsisType, /) -> Array: ...
    def __setitem__(self, index: Ranges | EllipsisType, value: Array, /) -> None: ...
