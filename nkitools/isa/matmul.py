"""The Tensor Engine: matrix multiplication and transposition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nkitools.chip.dtypes import DType, float32
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.numerics import Array, cast, to_float32
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.views import describe
from nkitools.isa import guards
from nkitools.isa.enums import engine as engines
from nkitools.isa.enums import matmul_perf_mode
from nkitools.isa.instruction import Check, Dst, Plan, Src, instruction
from nkitools.rules.finding import not_modelled

_FULL = frozenset({"float32", "tfloat32"})
_FLOAT8 = ("float8_e4m3", "float8_e5m2", "float8_e4m3fn")


@instruction
def nc_matmul(
    check: Check,
    dst: Dst,
    stationary: Src,
    moving: Src,
    is_stationary_onezero: Any = False,
    is_moving_onezero: Any = False,
    is_transpose: Any = False,
    accumulate: Any = None,
    tile_position: Any = (),
    tile_size: Any = (),
    perf_mode: Any = matmul_perf_mode.none,
    name: Any = None,
) -> Plan:
    """``dst = stationary.T @ moving`` on the Tensor Engine: products exact, sums in float32 in PSUM.

    Shapes: stationary [K, M], moving [K, N], dst [M, N] with K, M <= 128 and N <= 512 (4096/8192 on NeuronCore-v4); with
    ``perf_mode=double_row`` [K, 2, M] and [K, 2, N]. dst in one PSUM bank, float32 (bfloat16 too on v4). ``accumulate``: False
    overwrites, True adds, None overwrites what was never written and adds elsewhere. The ``*_onezero`` hints change speed only.
    ``tile_position``/``tile_size`` pick a part of the array; row sizes 64 (32 from v3 on) and 128, column sizes likewise.
    Errors: NK102 to NK107, NK109, NK111, NK201, NK301, NK302, NK303, NK401, NK606, NK609. Source: nki.isa.nc_matmul (NKI 0.6).
    """
    guards.one_of(check, "perf_mode", perf_mode, matmul_perf_mode)
    double_row = perf_mode is matmul_perf_mode.double_row
    rows, columns = _array_tile(check, tile_position, tile_size, double_row)
    guards.memory(check, stationary, "stationary", (MemoryRegion.sbuf,))
    guards.memory(check, moving, "moving", (MemoryRegion.sbuf,))
    guards.memory(check, dst, "dst", (MemoryRegion.psum,))
    _check_dtypes(check, dst, stationary, moving, double_row, bool(is_transpose))
    k, m, n = _check_shapes(check, stationary, moving, double_row, rows, columns, dst)
    _check_output(check, dst, m, n)
    guards.tiles(check, on=(MemoryRegion.sbuf, MemoryRegion.psum), dst=dst, stationary=stationary, moving=moving)
    if accumulate not in (None, True, False):
        check.refuse("NK609", f"`accumulate` must be True, False or None, it is {accumulate!r}")

    if is_transpose and check.chip.exact_transpose:
        compute = _transposed(dst.dtype)
    else:
        compute = _multiplied(dst.dtype, (k, m), (k, n), dst.shape == (m, n), accumulate, 2 if double_row else 1)

    passes = 4 if {stationary.dtype.name, moving.dtype.name} & _FULL else 1
    if passes == 4 and (is_stationary_onezero or is_moving_onezero or is_transpose):
        passes = 2
    cycles = passes * max(min(check.chip.min_initiation_cycles, m), n)
    return Plan("tensor", cycles, compute, wants_fresh=True, adds_always=accumulate is True)


def _array_tile(check: Check, position: Any, size: Any, double_row: bool) -> tuple[int, int]:
    """Rows and columns of the processing-element array that the call uses (Tiling mode)."""
    if not position and not size:
        return check.chip.partitions, check.chip.stationary_fmax
    if not (position and size):
        check.refuse("NK609", "`tile_position` and `tile_size` must both be given to use tiling mode")
    if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in (position, size)):
        check.refuse("NK609", f"`tile_position`={position} and `tile_size`={size} must be pairs (rows, columns)")
    allowed = check.chip.row_tile_sizes
    for what, start, length in zip(("row", "column"), position, size, strict=True):
        if length not in allowed:
            rule = "NK606" if length in (32, 64, 128) else "NK609"
            check.fail(rule, f"`tile_size` has {what} size {length}; {check.chip.name} has {', '.join(map(str, allowed))}")
        elif start % length or not 0 <= start < 128:
            check.fail("NK609", f"`tile_position` starts at {what} {start}, which is not a multiple of its size {length} below 128")
    if double_row and size[1] != 128:
        check.fail("NK609", "perf_mode=double_row cannot be combined with column tiling")
    return int(size[0]), int(size[1])


def _check_dtypes(
    check: Check, dst: NkiTensor, stationary: NkiTensor, moving: NkiTensor, double_row: bool, transpose: bool
) -> None:
    chip = check.chip
    if double_row and not chip.double_row_matmul:
        check.fail("NK606", f"{chip.name} has no performance mode; perf_mode=double_row came with NeuronCore-v3")
    names = {stationary.dtype.name, moving.dtype.name}
    if names & _FULL and not names <= _FULL:
        check.fail(
            "NK302",
            f"`stationary` is {describe(stationary)} and `moving` is {describe(moving)}; where one operand is float32 or "
            "tfloat32, the other must be too",
            stationary,
            moving,
        )
    if {"float8_e4m3", "float8_e4m3fn"} <= names:
        check.fail("NK302", "float8_e4m3 and float8_e4m3fn cannot be operands of one matmul", stationary, moving)
    for role, tensor in (("stationary", stationary), ("moving", moving)):
        kind = tensor.dtype.name
        if double_row and kind not in _FLOAT8:
            check.fail("NK301", f"perf_mode=double_row takes float8 operands, `{role}` is {describe(tensor)}", tensor)
        if kind not in chip.matmul_input_dtypes:
            later = kind == "float8_e4m3fn"
            text = f"the Tensor Engine of {chip.name} does not take {kind}; `{role}` is {describe(tensor)}"
            (check.fail if later else check.refuse)("NK606" if later else "NK301", text, tensor)
    transposed_as_is = transpose and chip.exact_transpose and dst.dtype is stationary.dtype
    if dst.dtype.name not in chip.matmul_output_dtypes and not transposed_as_is:
        allowed = " or ".join(sorted(chip.matmul_output_dtypes, reverse=True))
        check.fail(
            "NK303",
            f"`dst`, {describe(dst)}, must be {allowed}: the Tensor Engine of {chip.name} accumulates in float32",
            dst,
            remedy="Allocate the PSUM tile as float32 and cast while copying it out with nisa.tensor_copy.",
        )


def _check_shapes(
    check: Check,
    stationary: NkiTensor,
    moving: NkiTensor,
    double_row: bool,
    rows: int,
    columns: int,
    dst: NkiTensor,
) -> tuple[int, int, int]:
    """NK103, NK104, NK105, NK102: the contraction and the free sizes. Returns K, M, N."""
    for role, tensor in (("stationary", stationary), ("moving", moving)):
        if tensor.shape[0] > rows:
            check.fail(
                "NK103",
                f"`{role}`, {describe(tensor)}, contracts {tensor.shape[0]} partitions; the Tensor Engine contracts at most {rows}",
                tensor,
            )
        if double_row and (tensor.ndim < 3 or tensor.shape[1] != 2):
            check.refuse("NK109", f"with perf_mode=double_row dimension 1 of `{role}` must be 2, it is {describe(tensor)}", tensor)
    pairs = 2 if double_row else 1
    m, n = stationary.layout.free_elements // pairs, moving.layout.free_elements // pairs
    if stationary.shape[0] != moving.shape[0]:
        check.refuse(
            "NK102",
            f"`stationary`, {describe(stationary)}, and `moving`, {describe(moving)}, contract {stationary.shape[0]} and "
            f"{moving.shape[0]} partitions; the contraction dimension is the partition dimension of both",
            stationary,
            moving,
        )
    if m > columns:
        check.fail(
            "NK104",
            f"`stationary`, {describe(stationary)}, has a free size of {m}; the Tensor Engine holds at most {columns} columns",
            stationary,
        )
    limit = check.chip.moving_fmax(dst.dtype.name)
    if n > limit:
        check.fail(
            "NK105",
            f"`moving`, {describe(moving)}, has a free size of {n}; {check.chip.name} moves at most {limit} into a "
            f"{dst.dtype} destination",
            moving,
        )
    return stationary.shape[0], m, n


def _check_output(check: Check, dst: NkiTensor, m: int, n: int) -> None:
    """NK109, NK106: dst is [M, N] and lies in one PSUM bank (NeuronCore-v4: in all of PSUM)."""
    if dst.shape[0] != m or dst.layout.free_elements != n:
        check.refuse("NK109", f"`dst` must be [{m}, {n}] (stationary's and moving's free sizes), it is {describe(dst)}", dst)
    chip = check.chip
    bank = chip.psum_bank_bytes
    span = sum((size - 1) * stride for size, stride in zip(dst.shape[1:], dst.layout.strides[1:], strict=True))
    span += dst.dtype.itemsize
    room = chip.psum_partition_bytes if chip.moving_fmax_float32 * 4 > bank else bank
    if dst.layout.free_offset + span > room:
        check.fail(
            "NK106",
            f"`dst`, {describe(dst)}, spans {span} bytes of a PSUM partition from byte {dst.layout.free_offset} of its bank; "
            f"a matmul of {chip.name} writes one bank of {bank} bytes",
            dst,
        )


def _multiplied(
    dtype: DType,
    stationary_shape: tuple[int, int],
    moving_shape: tuple[int, int],
    flat: bool,
    accumulate: bool | None,
    pairs: int,
) -> Callable[..., None]:
    """The product in float32, written over or added to the destination (``flat``: it has the product's shape)."""
    direct = flat and dtype is float32
    k = stationary_shape[0] * pairs

    def compute(destination: Array, stationary: Array, moving: Array, fresh: Any) -> None:
        left = to_float32(stationary).reshape(k, stationary_shape[1])
        right = to_float32(moving).reshape(k, moving_shape[1])
        overwrites = accumulate is False or fresh is True
        if direct and overwrites:
            np.matmul(left.T, right, out=destination)
            return
        product = np.matmul(left.T, right).reshape(destination.shape)
        if overwrites:
            np.copyto(destination, cast(product, dtype))
            return
        if isinstance(fresh, np.ndarray):
            np.copyto(destination, np.zeros((), destination.dtype), where=fresh)
        if direct:
            np.add(destination, product, out=destination)
        else:
            np.copyto(destination, cast(to_float32(destination) + product, dtype))

    return compute


def _transposed(dtype: DType) -> Callable[..., None]:
    """Transpose mode: bit-accurate, also for NaN and infinities; moving is an identity or a permutation."""

    def compute(destination: Array, stationary: Array, moving: Array, fresh: Any) -> None:
        selector = to_float32(moving).reshape(moving.shape[0], -1)
        ones = selector == 1
        if not (ones | (selector == 0)).all() or not (ones.sum(axis=0) == 1).all():
            not_modelled("nc_matmul: is_transpose=True with a moving operand that is no identity or permutation matrix")
        source = stationary.reshape(stationary.shape[0], -1)[ones.argmax(axis=0)].T
        np.copyto(destination, cast(source, dtype).reshape(destination.shape))

    return compute


@instruction
def nc_transpose(check: Check, dst: Dst, data: Src, engine: Any = engines.unknown, name: Any = None) -> Plan:
    """``dst = data.T`` with all free dimensions as one, on the Tensor Engine (SBUF to PSUM, up to 128 x 128) or the Vector
    Engine (SBUF or PSUM, up to 32 x 32).

    ``dst`` has ``data``'s dtype. Without ``engine``: the Vector Engine for what it can hold unless only the Tensor Engine's way fits the
    memories. NeuronCore-v2's Tensor Engine multiplies by an identity, so that a NaN or infinity spreads over its column.
    Errors: NK101, NK109, NK201, NK302, NK206. Source: nki.isa.nc_transpose (NKI 0.6); trainium2_arch, transpose mode.
    """
    guards.one_of(check, "engine", engine, engines, (engines.tensor, engines.vector, engines.unknown))
    guards.tiles(check, dst=dst, data=data)
    partitions, free = data.shape[0], data.layout.free_elements
    if (dst.shape[0], dst.layout.free_elements) != (free, partitions):
        check.refuse("NK109", f"`dst` must be [{free}, {partitions}], the transpose of {describe(data)}; it is {describe(dst)}", dst, data)
    if dst.dtype is not data.dtype:
        check.fail("NK302", f"`dst`, {describe(dst)}, must have the dtype of `data`, {describe(data)}", dst, data)
    chosen = _transpose_engine(check, engine, dst, data)
    exact = chosen is engines.vector or check.chip.exact_transpose or not data.dtype.is_float
    dtype = dst.dtype

    def compute(destination: Array, values: Array) -> None:
        # A contiguous copy first: reading columns of rows that lie a power of two apart would miss the cache every time.
        source = np.ascontiguousarray(values.reshape(partitions, free))
        transposed = source.T if exact else _through_identity(source)
        np.copyto(destination, cast(transposed, dtype).reshape(destination.shape))

    if chosen is engines.vector:
        cycles: float = max(check.chip.min_initiation_cycles, free)
    else:
        passes = 4 if data.dtype.itemsize == 4 else 1
        cycles = (2 if passes == 4 and check.chip.exact_transpose else passes) * max(partitions, min(64, free))
    return Plan(chosen.name, cycles, compute)


def _transpose_engine(check: Check, engine: Any, dst: NkiTensor, data: NkiTensor) -> engines:
    limit = check.chip.vector_transpose_max
    small = data.shape[0] <= limit and data.layout.free_elements <= limit
    tensor_way = data.buffer is MemoryRegion.sbuf and dst.buffer is MemoryRegion.psum
    if engine is engines.vector or (engine is engines.unknown and small and not tensor_way):
        if not small:
            check.fail("NK206", f"the Vector Engine transposes up to {limit} x {limit}; `data` is {describe(data)}", data)
        return engines.vector
    guards.memory(check, data, "data", (MemoryRegion.sbuf,))
    guards.memory(check, dst, "dst", (MemoryRegion.psum,))
    if data.layout.free_elements > check.chip.stationary_fmax:
        check.fail("NK104", f"the Tensor Engine transposes up to 128 x 128; `data` is {describe(data)}", data)
    return engines.tensor


def _through_identity(source: Array) -> Array:
    """A transpose by multiplication with an identity: exact for finite values, NaN wherever 0 meets NaN or infinity."""
    values = to_float32(source)
    if np.isfinite(values).all():
        return values.T
    return np.matmul(values.T, np.eye(values.shape[0], dtype=np.float32))
