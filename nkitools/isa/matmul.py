"""The Tensor Engine: matrix multiplication and transposition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite

import numpy as np

from nkitools.chip.dtypes import DType, float32
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.numeric_flags import EVIDENCE, Product
from nkitools.chip.numerics import Array, cast, to_float32
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe, made_at, name_of
from nkitools.engines import costs
from nkitools.engines.enums import engine as engines
from nkitools.engines.enums import matmul_perf_mode
from nkitools.issue import guards
from nkitools.issue.element_maps import Elements, made
from nkitools.issue.element_rules import SAME, Column, Permutation, Rule, Transpose
from nkitools.issue.instruction import Check, Dst, Plan, Src, instruction
from nkitools.issue.plan import Fresh
from nkitools.rules.finding import not_modelled

_FULL = frozenset({"float32", "tfloat32"})
_FLOAT8 = ("float8_e4m3", "float8_e5m2", "float8_e4m3fn")


@instruction
def nc_matmul(
    check: Check,
    dst: Dst,
    stationary: Src,
    moving: Src,
    is_stationary_onezero: bool = False,
    is_moving_onezero: bool = False,
    is_transpose: bool = False,
    accumulate: bool | None = None,
    tile_position: tuple[int, ...] = (),
    tile_size: tuple[int, ...] = (),
    perf_mode: matmul_perf_mode = matmul_perf_mode.none,
    name: str | None = None,
) -> Plan:
    """``dst = stationary.T @ moving`` on the Tensor Engine, computed in float32, with sums in PSUM.

    Shapes, all free dimensions as one: stationary [K, M], moving [K, N], dst [M, N] with K, M <= 128 and N <= 512 (on
    NeuronCore-v4 4096, or 8192 for a bfloat16 dst); with ``perf_mode=double_row`` (NeuronCore-v3 on, float8 operands)
    [K, 2, M] and [K, 2, N]. Operands in SBUF: bfloat16, float16, float8_e4m3, float8_e5m2, on NeuronCore-v4
    float8_e4m3fn, in any pair but the two e4m3; or both of float32 and tfloat32. dst is float32 in one PSUM bank (on
    NeuronCore-v4 also bfloat16, and in several banks).
    ``accumulate``: False overwrites, True adds, None overwrites the elements that nothing has written since the tile
    was allocated and adds to the others. The ``*_onezero`` hints change speed only. ``is_transpose``: from
    NeuronCore-v3 on bit-accurate, into a dst of stationary's dtype or float32; moving is then an identity or a
    permutation. On NeuronCore-v2 it changes nothing. ``tile_position``/``tile_size``, (row, column) each, pick a part
    of the array, which K and M must fit in; row and column sizes are 64 and 128, from NeuronCore-v3 on also 32. Both
    are given, or neither.
    Errors: NK101 to NK106, NK108 to NK110, NK201, NK301, NK302, NK303, NK503, NK606, NK607, NK609. Source:
    nki.isa.nc_matmul (NKI 0.6).
    """
    double_row = guards.mode(check, "perf_mode", perf_mode, matmul_perf_mode) is matmul_perf_mode.double_row
    array = array_tile(check, tile_position, tile_size)
    _check_double_row(check, double_row, array, bool(is_transpose))
    accumulates = accumulation(check, accumulate)
    guards.memory(check, stationary, "stationary", (MemoryRegion.sbuf,))
    guards.memory(check, moving, "moving", (MemoryRegion.sbuf,))
    guards.memory(check, dst, "dst", (MemoryRegion.psum,))
    _check_dtypes(check, dst, stationary, moving, double_row, bool(is_transpose))
    k, m, n = _check_shapes(check, dst, stationary, moving, double_row, array)
    guards.bank(check, dst)
    guards.tiles(check, dst=dst, stationary=stationary, moving=moving)

    flat = dst.shape == (m, n)
    if is_transpose and check.chip.exact_transpose:
        compute = _transposed(dst.dtype, accumulates)
    else:
        compute = multiplied(dst.dtype, (k, m), (k, n), flat, accumulates)

    passes = _passes(check, stationary, moving, is_stationary_onezero or is_moving_onezero, is_transpose)
    cycles = costs.matmul(check.chip, m, n, passes)
    adds = accumulates is True
    return Plan(
        "tensor",
        cycles,
        compute,
        product_elements(Permutation() if is_transpose and check.chip.exact_transpose else Column(0), accumulates),
        lanes="product",
        wants_fresh=True,
        adds_always=adds,
        adds_to_matmuls_only=accumulates is not False and not check.chip.accumulates_on_any_value,
        passes=passes,
        tiled=array != (check.chip.partitions, check.chip.stationary_fmax),
    )


def product_elements(stationary: Rule, accumulate: bool | None, **scales: Rule) -> Elements:
    """Return the element map: where the product may be added, of the destination's earlier value too."""
    earlier: dict[str, Rule] = {} if accumulate is False else {"dst": SAME}
    return made(dst={"stationary": stationary, "moving": Column(1), **scales, **earlier})


def _passes(check: Check, stationary: NkiTensor, moving: NkiTensor, onezero: bool, transpose: bool) -> int:
    """float32 takes four passes, two where an operand is of ones and zeros or in transpose mode."""
    if "float32" not in (stationary.dtype.name, moving.dtype.name):
        return 1
    return 2 if onezero or (transpose and check.chip.exact_transpose) else 4


def accumulation(check: Check, accumulate: bool | None) -> bool | None:
    """NK609: ``accumulate`` as True, False or None; a comparison of NumPy integers is as good as Python's."""
    if accumulate is not None and not isinstance(accumulate, (bool, np.bool_)):
        check.refuse("NK609", f"`accumulate` must be True, False or None, it is {accumulate!r}")
    return None if accumulate is None else bool(accumulate)


def array_tile(check: Check, position: Sequence[int] | None, size: Sequence[int] | None) -> tuple[int, int]:
    """Rows and columns of the processing-element array that the call uses (Tiling mode)."""
    whole = (check.chip.partitions, check.chip.stationary_fmax)
    if not position and not size:
        return whole
    if not (position and size):
        check.refuse("NK609", "`tile_position` and `tile_size` must both be given to use tiling mode")
    for role, pair in (("tile_position", position), ("tile_size", size)):
        if (
            not isinstance(pair, tuple)
            or len(pair) != 2
            or not all(isinstance(each, (int, np.integer)) for each in pair)
        ):
            check.refuse("NK609", f"`{role}` must be a pair of integers (row, column), it is {pair!r}")
    allowed = check.chip.row_tile_sizes
    for what, start, length, limit in zip(("row", "column"), position, size, whole, strict=True):
        if length not in allowed:
            rule = "NK606" if length in (32, 64, 128) else "NK609"
            sizes = ", ".join(map(str, allowed))
            check.fail(rule, f"`tile_size`={size} has {what} size {length}; {check.chip.name} has {sizes}")
        elif start % length or not 0 <= start < limit:
            check.fail(
                "NK609",
                f"`tile_position`={position} starts at {what} {start}, which is not a multiple of its size {length} "
                f"below {limit}",
            )
    return int(size[0]), int(size[1])


def _check_double_row(check: Check, double_row: bool, array: tuple[int, int], transpose: bool) -> None:
    """NK609: double FP8 goes with neither column tiling nor transpose mode (trainium2_arch, Double FP8)."""
    if double_row and array[1] != check.chip.stationary_fmax:
        check.fail("NK609", "`perf_mode`=double_row cannot be combined with column tiling (`tile_size`)")
    if double_row and transpose:
        check.refuse("NK609", "`perf_mode`=double_row cannot be combined with `is_transpose`")


def _check_dtypes(
    check: Check, dst: NkiTensor, stationary: NkiTensor, moving: NkiTensor, double_row: bool, transpose: bool
) -> None:
    """NK302, NK303, NK606, NK301, in this order: which dtypes go together, into which, and on which chip."""
    chip = check.chip
    names = {stationary.dtype.name, moving.dtype.name}
    if names & _FULL and not names <= _FULL:
        message = (
            f"`stationary` is {describe(stationary)} and `moving` is {describe(moving)}; where one operand is float32 "
            "or tfloat32, the other must be too"
        )
        check.fail("NK302", message, stationary, moving)
    if {"float8_e4m3", "float8_e4m3fn"} <= names:
        message = (
            f"`stationary` is {describe(stationary)} and `moving` is {describe(moving)}; float8_e4m3 and float8_e4m3fn "
            "cannot be operands of one matmul"
        )
        check.fail("NK302", message, stationary, moving)
    transposed_as_is = transpose and chip.exact_transpose and dst.dtype is stationary.dtype
    if dst.dtype.name not in chip.matmul_output_dtypes and not transposed_as_is:
        allowed = " or ".join(sorted(chip.matmul_output_dtypes, reverse=True))
        message = f"`dst`, {describe(dst)}, must be {allowed}: the Tensor Engine of {chip.name} accumulates in float32"
        remedy = "Allocate the PSUM tile as float32 and cast while copying it out with nisa.tensor_copy."
        check.fail("NK303", message, dst, remedy=remedy, argument="dst")
    if double_row and not chip.double_row_matmul:
        check.fail(
            "NK606",
            f"`perf_mode`=double_row came with NeuronCore-v3; {chip.name} has no performance mode",
            remedy="Leave perf_mode out on this chip.",
            argument="perf_mode",
        )
    for role, tensor in (("stationary", stationary), ("moving", moving)):
        _check_input_dtype(check, role, tensor, double_row)


def _check_input_dtype(check: Check, role: str, tensor: NkiTensor, double_row: bool) -> None:
    kind, chip = tensor.dtype.name, check.chip
    if kind == "float8_e4m3fn" and kind not in chip.matmul_input_dtypes:
        check.fail(
            "NK606", f"`{role}` is {describe(tensor)}; {kind} came with NeuronCore-v4, this is {chip.name}", tensor
        )
    elif kind not in chip.matmul_input_dtypes:
        check.refuse(
            "NK301", f"the Tensor Engine of {chip.name} does not take {kind}; `{role}` is {describe(tensor)}", tensor
        )
    if double_row and kind not in _FLOAT8:
        check.fail("NK301", f"`perf_mode`=double_row takes float8 operands, `{role}` is {describe(tensor)}", tensor)


def _check_shapes(
    check: Check, dst: NkiTensor, stationary: NkiTensor, moving: NkiTensor, double_row: bool, array: tuple[int, int]
) -> tuple[int, int, int]:
    """NK102 to NK105, NK109: the contraction and the free sizes. Returns K (of both rows), M, N."""
    pairs = 2 if double_row else 1
    for role, tensor in (("stationary", stationary), ("moving", moving)):
        if double_row and (tensor.ndim < 3 or tensor.shape[1] != 2):
            message = f"with perf_mode=double_row dimension 1 of `{role}` must be 2, it is {describe(tensor)}"
            check.refuse("NK109", message, tensor)
    m, n = stationary.layout.free_elements // pairs, moving.layout.free_elements // pairs
    check_contraction(check, stationary, moving, array[0])
    check_free_sizes(check, dst, stationary, moving, (m, n), array[1])
    return stationary.shape[0] * pairs, m, n


def check_contraction(check: Check, stationary: NkiTensor, moving: NkiTensor, rows: int) -> None:
    for role, tensor in (("stationary", stationary), ("moving", moving)):
        if tensor.shape[0] > rows:
            message = (
                f"`{role}`, {describe(tensor)}, contracts {tensor.shape[0]} partitions; the Tensor Engine contracts at "
                f"most {rows}"
            )
            remedy = (
                f"Load{name_of(tensor)}{made_at(tensor)} and the other operand in {-(-tensor.shape[0] // rows)} tiles "
                f"of {rows} rows, and issue one nisa.nc_matmul for each: they accumulate in the same PSUM tile."
            )
            check.fail("NK103", message, tensor, argument=role, partitions=tensor.shape[0], limit=rows, remedy=remedy)
            tensor.storage.excused |= {"NK101"}
    if stationary.shape[0] != moving.shape[0]:
        message = (
            f"`stationary`, {describe(stationary)}, and `moving`, {describe(moving)}, contract {stationary.shape[0]} "
            f"and {moving.shape[0]} partitions; the contraction dimension is the partition dimension of both"
        )
        from nkitools.issue.shape_remedies import to_contract

        change = to_contract(stationary, moving)
        other = moving if change.tensor is stationary else stationary
        facts = {"partitions": stationary.shape[0], **change.facts}
        check.refuse("NK102", message, change.tensor, other, remedy=change.remedy, **facts)


def check_free_sizes(
    check: Check, dst: NkiTensor, stationary: NkiTensor, moving: NkiTensor, sizes: tuple[int, int], columns: int
) -> None:
    """NK104, NK105, NK109: the free sizes (M, N) of the operands, and a destination of [M, N]."""
    m, n = sizes
    fits = (dst.shape[0], dst.layout.free_elements) == (m, n)
    # A size beyond its limit is the cause of a destination that does not fit.
    say = check.fail if fits else check.refuse
    limit = check.chip.moving_fmax(dst.dtype.name)
    can_exchange = n <= columns and m <= limit
    if m > columns:
        message = (
            f"`stationary`, {describe(stationary)}, has a free size of {m}; the Tensor Engine holds at most {columns} "
            "columns"
        )
        remedy = (
            f"Loop over {-(-m // columns)} pieces{name_of(stationary, ' of')}{made_at(stationary)} of {columns} "
            f"columns, each with a PSUM tile of [{columns}, {n}] of its own."
        )
        if can_exchange:
            remedy = _or_exchanged(remedy, dst, stationary, moving, sizes)
        say("NK104", message, stationary, argument="stationary", extent=m, limit=columns, remedy=remedy)
    if n > limit:
        message = (
            f"`moving`, {describe(moving)}, has a free size of {n}; {check.chip.name} moves at most {limit} into a "
            f"{dst.dtype} destination"
        )
        remedy = (
            f"Loop over {-(-n // limit)} pieces{name_of(moving, ' of')}{made_at(moving)} of {limit} columns, each with "
            f"a PSUM tile of [{m}, {limit}] of its own."
        )
        say("NK105", message, moving, argument="moving", extent=n, limit=limit, remedy=remedy)
    if not fits:
        message = f"`dst` must be [{m}, {n}] (the free sizes of `stationary` and `moving`), it is {describe(dst)}"
        from nkitools.issue.shape_remedies import resized

        change = resized(dst, (m, n))
        check.refuse("NK109", message, dst, remedy=change.remedy, **change.facts)


def _or_exchanged(remedy: str, dst: NkiTensor, stationary: NkiTensor, moving: NkiTensor, sizes: tuple[int, int]) -> str:
    """Return that the operands are exchanged, where ``dst`` fits then; else a remedy behind that question."""
    m, n = sizes
    call = f"pass{name_of(moving)} as `stationary` and{name_of(stationary)} as `moving`"
    if (dst.shape[0], dst.layout.free_elements) == (n, m):
        return f"The operands are exchanged: {call}, whose product is [{n}, {m}] as `dst` is."
    return f"If the product is to be [{n}, {m}], {call}; otherwise {remedy[0].lower()}{remedy[1:]}"


def multiplied(
    dtype: DType, stationary_shape: tuple[int, int], moving_shape: tuple[int, int], flat: bool, accumulate: bool | None
) -> Callable[..., None]:
    """Return the product in float32, written over or added to the destination, which ``flat`` shows in its shape."""
    direct = flat and dtype is float32

    def compute(destination: Array, stationary: Array, moving: Array, fresh: Fresh) -> None:
        left, right = to_float32(stationary), to_float32(moving)
        if left.shape != stationary_shape:
            left = left.reshape(stationary_shape)
        if right.shape != moving_shape:
            right = right.reshape(moving_shape)
        if direct and (accumulate is False or fresh is True):
            note_product(np.matmul(left.T, right, out=destination))
        else:
            deposit(destination, note_product(np.matmul(left.T, right)), dtype, accumulate, fresh)

    return compute


def note_product(product: Array) -> Array:
    """Return the product, after it is noted where not all of it is finite (NK404).

    Its sum of squares shows that in one pass, which takes BLAS a fortieth of the time of the product. Squares that are
    too large for float32 show it, too: the rule that follows looks again.
    """
    evidence = EVIDENCE.get()
    if evidence is not None:
        flat = product.reshape(-1)
        if not isfinite(np.dot(flat, flat)):
            evidence.append(Product(product))
    return product


def deposit(destination: Array, values: Array, dtype: DType, accumulate: bool | None, fresh: Fresh) -> None:
    """Write over the destination, or add in float32: everywhere, or where it is not ``fresh``."""
    if values.shape != destination.shape:
        values = values.reshape(destination.shape)
    if accumulate is False or fresh is True:
        np.copyto(destination, cast(values, dtype))
        return
    if isinstance(fresh, np.ndarray):
        np.copyto(destination, np.zeros((), destination.dtype), where=fresh)
    if dtype is float32:
        np.add(destination, values, out=destination)
    else:
        np.copyto(destination, cast(to_float32(destination) + to_float32(values), dtype))


def _transposed(dtype: DType, accumulate: bool | None) -> Callable[..., None]:
    """Transpose mode: bit-accurate, also for NaN and infinities; moving is an identity or a permutation."""

    def compute(destination: Array, stationary: Array, moving: Array, fresh: Fresh) -> None:
        selector = to_float32(moving).reshape(moving.shape[0], -1)
        ones = selector == 1
        if not (ones | (selector == 0)).all() or not (ones.sum(axis=0) == 1).all():
            not_modelled("nc_matmul: is_transpose=True with a moving operand that is no identity or permutation matrix")
        source = stationary.reshape(stationary.shape[0], -1)[ones.argmax(axis=0)].T
        deposit(destination, source, dtype, accumulate, fresh)

    return compute


@instruction
def nc_transpose(check: Check, dst: Dst, data: Src, engine: engines = engines.unknown, name: str | None = None) -> Plan:
    """``dst = data.T`` with all free dimensions of ``data`` as one.

    The Tensor Engine transposes up to 128 x 128 from SBUF to PSUM, the Vector Engine up to 32 x 32, in and between SBUF
    and PSUM. With ``engine=nisa.engine.vector`` it transposes larger tiles, as a public benchmark does and the
    documents exclude (NK621). Without ``engine``: the Tensor Engine from SBUF to PSUM and for tiles beyond 32 x 32,
    else the Vector Engine. ``dst`` has ``data``'s dtype; the Tensor Engine also writes bfloat16 and float16 as float32
    (NK621). NeuronCore-v2's Tensor Engine multiplies by an identity, so that a NaN or infinity makes all other elements
    of its column of ``data`` NaN.
    Errors: NK101, NK106 to NK110, NK201, NK206, NK302, NK609, NK621.
    Source: nki.isa.nc_transpose (NKI 0.6); trainium2_arch, transpose mode.
    """
    guards.one_of(check, "engine", engine, engines, (engines.tensor, engines.vector, engines.unknown))
    partitions, free = data.shape[0], data.layout.free_elements
    fits = (dst.shape[0], dst.layout.free_elements) == (free, partitions)
    chosen = _transpose_engine(check, engine, dst, data, fits)
    guards.tiles(check, dst=dst, data=data)
    if not fits:
        message = (
            f"`dst` must be [{free}, {partitions}], the transpose of `data`, {describe(data)}; it is {describe(dst)}"
        )
        from nkitools.issue.shape_remedies import resized

        change = resized(dst, (free, partitions))
        check.refuse("NK109", message, dst, data, remedy=change.remedy, **change.facts)
    if dst.dtype is not data.dtype:
        message = f"`dst`, {describe(dst)}, must have the dtype of `data`, {describe(data)}"
        if dst.dtype is float32 and data.dtype.name in ("bfloat16", "float16") and chosen is engines.tensor:
            message += "; compilers have taken float32 in PSUM, which holds every such value"
            check.goes_beyond(message, dst, data, remedy=f"Allocate `dst` with dtype {data.dtype}.")
        else:
            check.fail("NK302", message, dst, data)
    exact = chosen is engines.vector or check.chip.exact_transpose or not data.dtype.is_float
    dtype = dst.dtype

    def compute(destination: Array, values: Array) -> None:
        # A contiguous copy first: reading columns of rows that lie a power of two apart misses the cache every time.
        source = np.ascontiguousarray(values.reshape(partitions, free)).T
        np.copyto(destination, cast(source if exact else _spread(source), dtype).reshape(destination.shape))

    if chosen is engines.vector:
        cycles = costs.streaming(check.chip, data)
    else:
        passes = 1 if data.dtype.itemsize < 4 else 2 if check.chip.exact_transpose else 4
        cycles = costs.matmul(check.chip, free, partitions, passes)
    # Multiplied by an identity, a NaN reaches all of its column.
    elements = made(dst={"data": Transpose() if exact else Column(0)})
    return Plan(chosen.name, cycles, compute, elements, lanes="copy")


def _transpose_engine(check: Check, engine: engines, dst: NkiTensor, data: NkiTensor, fits: bool) -> engines:
    """Return the engine asked for or fitting, after a look at its memories (NK201) and sizes (NK107)."""
    limit = check.chip.vector_transpose_max
    partitions, free = data.shape[0], data.layout.free_elements
    small = partitions <= limit and free <= limit
    tensor_way = data.buffer is MemoryRegion.sbuf and dst.buffer is MemoryRegion.psum
    say = check.fail if fits else check.refuse
    if engine is engines.vector or (engine is engines.unknown and small and not tensor_way):
        if not small:
            message = (
                f"the Vector Engine transposes up to {limit} x {limit} by the documents; `data` is {describe(data)}; "
                "compilers have taken it and transposed all of the tile"
            )
            remedy = f"Transpose by blocks of {limit} x {limit}, or on the Tensor Engine into PSUM."
            if fits:
                check.goes_beyond(message, data, remedy=remedy)
        return engines.vector
    guards.memory(check, data, "data", (MemoryRegion.sbuf,))
    guards.memory(check, dst, "dst", (MemoryRegion.psum,))
    guards.bank(check, dst)
    most = check.chip.stationary_fmax
    if free > most:
        message = f"the Tensor Engine transposes up to {most} x {most}; `data` is {describe(data)}"
        say("NK107", message, data, argument="data", extent=free, limit=most)
    return engines.tensor


def _spread(transposed: Array) -> Array:
    """Return a transpose as multiplying by an identity computes it: NaN or infinity times 0 makes its whole row NaN.

    A single infinity in a row survives where it meets the 1; finite rows are exact.
    """
    broken = ~np.isfinite(to_float32(transposed))
    survives = broken & (broken.sum(axis=1, keepdims=True) == 1)
    return np.where(broken.any(axis=1, keepdims=True) & ~survives, to_float32(transposed) * np.nan, transposed)
