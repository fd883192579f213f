"""``nl.*``: creating tensors."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from nkitools.chip.argument_types import Shape
from nkitools.chip.core import current_core
from nkitools.chip.dtypes import DType, DTypeLike
from nkitools.chip.memory import ON_CHIP, MemoryRegion
from nkitools.chip.numerics import Array, cast
from nkitools.chip.tensor import NkiTensor
from nkitools.dialects.legacy.aws_names.allocation import Allocation, Allocator
from nkitools.dialects.legacy.kernels.kernel_state import form_of
from nkitools.dialects.legacy.kernels.keywords import Keyword, check_keywords
from nkitools.dialects.legacy.kernels.shared_hbm_scope import check_kernel_level
from nkitools.dialects.legacy.tiles.blocks import block_dimensions, new_blocks
from nkitools.dialects.legacy.tiles.dtypes import ResultDType, element_type, is_number
from nkitools.dialects.legacy.tiles.elementwise import check_tile
from nkitools.dialects.legacy.tiles.tensor import Tensor
from nkitools.isa.move import fill as fill_with
from nkitools.language import creation
from nkitools.language.creation import checked_shape, region
from nkitools.rules.finding import refuse, report

sbuf = MemoryRegion.sbuf

Placement: TypeAlias = MemoryRegion | Allocation | Allocator | str | None  # nl.sbuf, ncc.sbuf.mod_alloc(...)


def _new(
    what: str, shape: Shape, dtype: ResultDType, buffer: Placement, name: str, fill: float | None = None
) -> Tensor:
    memory, allocation = _placed(buffer)
    sizes = _column(what, checked_shape(shape, what), memory)
    if fill is not None and not _is_zeroed(what, memory):
        _check_value(what, memory, allocation)
    if memory is MemoryRegion.shared_hbm:
        check_kernel_level(what)

    def make(tile_shape: tuple[int, ...], kind: DType, block: tuple[int, ...] = ()) -> NkiTensor:
        where = None if allocation is None else allocation.address(what, block, tile_shape, kind.itemsize)
        tensor = creation.ndarray(tile_shape, kind, memory, name, where)
        form_of().declare(tensor)
        if fill is not None and not tensor.on_chip:
            _zero(tensor)
        elif fill is not None:
            current_core(what).record.begin_value(tensor.storage)
            fill_with(tensor, fill)
        return tensor

    kind = element_type(dtype)
    blocks = block_dimensions(shape) if memory in ON_CHIP else 0
    if blocks:
        return new_blocks(sizes, blocks, kind, make)
    return Tensor(make(sizes, kind)) if fill is None else Tensor.made(make(sizes, kind))


def _column(what: str, sizes: tuple[int, ...], memory: MemoryRegion) -> tuple[int, ...]:
    """Return a shape; one dimension on chip, which only nl.ndarray may declare, becomes a column (NK621)."""
    if len(sizes) > 1 or memory not in ON_CHIP or what != "nl.ndarray" or sizes == (1,):
        return sizes
    message = (
        f"nl.ndarray: a tile of the shape {list(sizes)} is declared; the documents ask for two dimensions on chip, and "
        "compilers have taken the declaration"
    )
    report("NK621", message, remedy=f"Give it the shape ({sizes[0]}, 1).")
    return (sizes[0], 1)


def _is_zeroed(what: str, memory: MemoryRegion) -> bool:
    """Return whether a tensor is made by nl.zeros in HBM (NK621): it is zero when the kernel begins."""
    if what != "nl.zeros" or memory in ON_CHIP:
        return False
    message = (
        "nl.zeros: the documents have no tensor in HBM that is created with a value "
        "(err_hbm_tensor_with_init_value_not_supported); compilers have taken zeros"
    )
    remedy = "Create it with nl.ndarray and write the zeros with nl.store."
    report("NK621", message, remedy=remedy, facts={"code": "err_hbm_tensor_with_init_value_not_supported"})
    return True


def _zero(tensor: NkiTensor) -> None:
    """Make a tensor in HBM zero; of one that programs share the first program does so."""
    storage = tensor.storage
    if not storage.full:
        storage.array.fill(0)
        storage.mark_written(tensor.layout, 0)


def _placed(buffer: Placement) -> tuple[MemoryRegion, Allocation | None]:
    """Return the memory that ``buffer=`` names, and the author's allocation in it, if there is one."""
    if isinstance(buffer, Allocation):
        return buffer.memory, None if form_of().automatic else buffer
    if isinstance(buffer, Allocator):
        return buffer.memory, None
    return sbuf if buffer is None else region(buffer), None


def _check_value(what: str, memory: MemoryRegion, allocation: Allocation | None) -> None:
    if memory not in ON_CHIP:
        refuse(
            "NK205",
            f"{what}: a tensor in HBM cannot be created with a value (err_hbm_tensor_with_init_value_not_supported)",
            facts={"code": "err_hbm_tensor_with_init_value_not_supported"},
        )
    if allocation is not None:
        message = (
            f"{what}: a tensor that is allocated directly cannot be created with a value "
            "(err_tensor_creation_on_scratchpad_with_init_value_not_supported)"
        )
        remedy = "Create it with nl.ndarray and assign the value: tensor[...] = 0."
        facts = {"code": "err_tensor_creation_on_scratchpad_with_init_value_not_supported"}
        report("NK614", message, remedy=remedy, facts=facts)


def ndarray(shape: Shape, dtype: ResultDType, *, buffer: Placement = None, name: str = "", **kwargs: Keyword) -> Tensor:
    """Return a new tensor, in SBUF by default, whose elements are undefined.

    ``buffer``: a memory, or a place in SBUF or PSUM (``nki.compiler.sbuf.mod_alloc(...)``). In SBUF and PSUM a shape
    of one dimension becomes a column (NK621, a hint); dimensions in front of an nl.par_dim are block dimensions (NK612,
    a warning). A tensor in shared HBM is made in the kernel's own body, not in a function that it calls (NK208).
    Errors: NK106, NK108, NK110, NK207, NK208, NK301, NK402, NK609, NK611, NK614.
    """
    check_keywords("nl.ndarray", kwargs)
    return _new("nl.ndarray", shape, dtype, buffer, name)


def full(
    shape: Shape, fill_value: float, dtype: ResultDType, *, buffer: Placement = None, name: str = "", **kwargs: Keyword
) -> Tensor:
    """Return a new tile, in SBUF by default, filled with the number ``fill_value``.

    ``buffer``: nl.sbuf or nl.psum; HBM is NK205, a place that the author allocated NK614. A number beyond an integer
    ``dtype`` saturates (NK304). Dimensions in front of an nl.par_dim are block dimensions (NK612, a warning).
    Errors: NK101, NK107, NK110, NK205, NK301, NK609, NK611, NK614.
    """
    check_keywords("nl.full", kwargs)
    if not is_number(fill_value):
        refuse("NK609", f"nl.full: `fill_value` must be a number, it is {type(fill_value).__name__}")
    return _new("nl.full", shape, dtype, buffer, name, fill_value)


def zeros(shape: Shape, dtype: ResultDType, *, buffer: Placement = None, name: str = "", **kwargs: Keyword) -> Tensor:
    """Return a new tensor of zeros, in SBUF by default.

    All is as for nl.full, but HBM is possible as well (NK621, a hint): such a tensor is zero when the kernel begins.
    One in shared HBM is made in the kernel's own body, not in a function that it calls (NK208).
    """
    check_keywords("nl.zeros", kwargs)
    return _new("nl.zeros", shape, dtype, buffer, name, 0)


def ones(shape: Shape, dtype: ResultDType, *, buffer: Placement = None, name: str = "", **kwargs: Keyword) -> Tensor:
    """Return a new tile of ones, in SBUF by default; all else as nl.full."""
    check_keywords("nl.ones", kwargs)
    return _new("nl.ones", shape, dtype, buffer, name, 1)


def zeros_like(
    a: Tensor, dtype: ResultDType = None, *, buffer: Placement = None, name: str = "", **kwargs: Keyword
) -> Tensor:
    """Return a new tile of zeros of the shape of ``a``, by default in SBUF and of its dtype; all else as nl.full."""
    check_keywords("nl.zeros_like", kwargs)
    check_tile("nl.zeros_like", "a", a)
    return _new("nl.zeros_like", a.shape, a.element if dtype is None else dtype, buffer, name, 0)


def empty_like(
    a: Tensor, dtype: ResultDType = None, *, buffer: Placement = None, name: str = "", **kwargs: Keyword
) -> Tensor:
    """Return a new tensor of the shape of ``a``, by default in SBUF and of its dtype; all else as nl.ndarray."""
    check_keywords("nl.empty_like", kwargs)
    check_tile("nl.empty_like", "a", a)
    return _new("nl.empty_like", a.shape, a.element if dtype is None else dtype, buffer, name)


def shared_constant(constant: Array, dtype: ResultDType = None, **kwargs: Keyword) -> Tensor:
    """Return a tensor in private HBM with the shape and values of a NumPy array.

    ``dtype``: of the tensor, by default that of the array. Errors: NK301, NK609, NK611.
    """
    check_keywords("nl.shared_constant", kwargs)
    if not isinstance(constant, np.ndarray) or constant.ndim == 0 or constant.size == 0:
        message = "nl.shared_constant takes a NumPy array of at least one dimension and element, it is given "
        refuse("NK609", f"{message}{type(constant).__name__} {getattr(constant, 'shape', '')}")
    kind = element_type(constant.dtype if dtype is None else dtype)
    storage = current_core("nl.shared_constant").allocate(constant.shape, kind, MemoryRegion.private_hbm)
    np.copyto(storage.array, cast(constant, kind))
    tensor = NkiTensor.whole(storage)
    storage.mark_written(tensor.layout, 0)
    return Tensor(tensor)


def shared_identity_matrix(n: int, dtype: DTypeLike = np.uint8, **kwargs: Keyword) -> Tensor:
    """Return the identity matrix of ``n`` rows and columns in private HBM. Errors: NK301, NK609, NK611."""
    check_keywords("nl.shared_identity_matrix", kwargs)
    (size,) = checked_shape((n,), "nl.shared_identity_matrix")
    return shared_constant(np.eye(size, dtype=np.float32), dtype)
