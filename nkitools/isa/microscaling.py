"""Microscaling (MX) on NeuronCore-v4: quantising to MXFP8, and the matmul of MXFP8 and MXFP4 operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nkitools.chip.dtypes import (
    bfloat16,
    float4_e2m1fn_x4,
    float8_e4m3fn_x4,
    float8_e5m2_x4,
    float8_e8m0fnu,
    float16,
    uint8,
)
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.numerics import Array
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.engines import costs
from nkitools.engines.microscaling_formats import (
    FORMATS,
    GROUP_ELEMENTS,
    GROUP_PARTITIONS,
    Format,
    decoded,
    is_wide,
    quantized,
)
from nkitools.isa.matmul import (
    accumulation,
    array_tile,
    check_contraction,
    check_free_sizes,
    deposit,
    multiplied,
    product_elements,
)
from nkitools.issue import guards, instruction_guards
from nkitools.issue.element_maps import made
from nkitools.issue.element_rules import SAME, Blocks, Column, Only
from nkitools.issue.instruction import Check, Dst, Plan, Src, instruction
from nkitools.issue.plan import Fresh

_SBUF = (MemoryRegion.sbuf,)
_PSUM = (MemoryRegion.psum,)
_QUADRANT = 32  # partitions; each has the scales of its own groups
_SCALES_OF_QUADRANT = _QUADRANT // GROUP_PARTITIONS
_NEWER = "Run the kernel for trn3 (chip='trn3', or NEURON_PLATFORM_TARGET_OVERRIDE=trn3)."
_SCALE_OFFSETS = (0, 4, 8, 12)  # where they may begin in it (mxfp-matmul, Packing Scale Values)


@instruction
def quantize_mx(check: Check, dst: Dst, src: Src, dst_scale: Dst, name: str | None = None) -> Plan:
    """``dst = src / scale`` in MXFP8, with one scale for 8 partitions x 4 elements; Vector Engine, NeuronCore-v4.

    Shapes: ``src`` [P, 4F], P a multiple of 32 up to 128; ``dst`` [P, F]; ``dst_scale`` with F elements per partition:
    the scales of 32 partitions go to 4 partitions of their own quadrant, from its partition 0, 4, 8 or 12 on (that is
    where the view begins), so that the view has at least 4, 36, 68 or 100 partitions. All others stay as they were.
    Dtypes: ``src`` float16 or bfloat16, ``dst`` float8_e5m2_x4 or float8_e4m3fn_x4, ``dst_scale`` float8_e8m0fnu or
    uint8 (its bits). All in SBUF. The scale is 2**(floor(log2(max|src|)) - 14) for e5m2, ... - 7 for e4m3fn, and at
    least 2**-127, also for zeros; elements are rounded to nearest even. The scale leaves the upper half of the element
    format's range free (NKI 0.5), so that no finite number saturates.
    Not documented are infinities and NaN (OCP leaves them to the implementation). As in AWS's CPU reference they count
    as 2**128 for the scale, an infinity saturates (its product with the scale is beyond float32), NaN stays NaN.
    Errors: NK101, NK102, NK107 to NK110, NK113, NK201, NK301, NK401, NK606, NK609. Source: nki.isa.quantize_mx (NKI
    0.6).
    """
    guards.came_later(check, "microscaling", "microscaling", _NEWER)
    guards.tiles(check, on=_SBUF, src=src, dst=dst)
    instruction_guards.of_dtype(check, "src", src, float16, bfloat16)
    form = _output_format(check, dst)
    _whole_quadrants(check, "src", src)
    guards.same_partitions(check, ("dst", dst), ("src", src))
    free = src.layout.free_elements
    if free % GROUP_ELEMENTS:
        check.refuse(
            "NK113", f"`src`, {describe(src)}, has {free} elements per partition; they must be a multiple of 4", src
        )
    instruction_guards.exactly(check, "dst", dst, free // GROUP_ELEMENTS)
    rows = _scale_rows(check, "dst_scale", dst_scale, "dst", dst)
    shape = (src.shape[0], free)

    def compute(destination: Array, values: Array, scales: Array) -> None:
        codes, exponents = quantized(form, values.reshape(shape))
        np.copyto(destination.view(np.dtype("<u4")), codes.view(np.dtype("<u4")).reshape(destination.shape))
        scales[rows] = exponents.reshape(len(rows), *scales.shape[1:]).view(scales.dtype)

    cycles = costs.streaming(check.chip, src, 0.25)
    left = np.ones((dst_scale.shape[0], 1), np.bool_)
    left[rows] = False
    elements = made(
        dst={"src": Blocks(GROUP_PARTITIONS, GROUP_ELEMENTS)},
        dst_scale={
            "src": Blocks(GROUP_PARTITIONS, GROUP_ELEMENTS, tuple(rows.tolist())),
            "dst_scale": Only(SAME, left),
        },
    )
    return Plan("vector", cycles, compute, elements, touches=_touches(2, (dst_scale, rows)))


@instruction
def nc_matmul_mx(
    check: Check,
    dst: Dst,
    stationary: Src,
    moving: Src,
    stationary_scale: Src,
    moving_scale: Src,
    tile_position: tuple[int, ...] | None = None,
    tile_size: tuple[int, ...] | None = None,
    accumulate: bool | None = None,
    name: str | None = None,
) -> Plan:
    """``dst = stationary.T @ moving`` of MXFP8 or MXFP4 operands times their scales; Tensor Engine, NeuronCore-v4.

    Shapes: stationary [K, M], moving [K, N], dst [M, N], with K a multiple of 32 up to 128, M even up to 128 and N up
    to 4096 (8192 into bfloat16); the four elements of a packed one are contracted, too. Each scale tensor has as many
    elements per partition as its operand, 4 partitions in each quadrant: see quantize_mx. Scale 255 makes its group
    NaN. Dtypes: float8_e5m2_x4, float8_e4m3fn_x4 and float4_e2m1fn_x4, mixed at will; scales float8_e8m0fnu or uint8;
    dst float32 or bfloat16. Operands and scales in SBUF, dst in PSUM. Products are exact, sums are in float32.
    ``accumulate``, ``tile_position`` and ``tile_size`` as in nc_matmul; the array is split by rows only (column size
    128). The quadrant of a scale view is taken to be the one that it has in its own tensor, as for all operands.
    Errors: NK101 to NK105, NK108 to NK110, NK113, NK201, NK301, NK303, NK401, NK503, NK606, NK609. Source:
    nki.isa.nc_matmul_mx (NKI 0.6).
    """
    guards.came_later(check, "microscaling", "microscaling", _NEWER)
    rows, columns = _row_tile(check, tile_position, tile_size)
    accumulates = accumulation(check, accumulate)
    scale_operands = (("stationary_scale", stationary_scale), ("moving_scale", moving_scale))
    for role, tensor in (("stationary", stationary), ("moving", moving), *scale_operands):
        guards.memory(check, tensor, role, _SBUF)
    guards.memory(check, dst, "dst", _PSUM)
    _check_output_dtype(check, dst)
    forms = tuple(_input_format(check, role, each) for role, each in (("stationary", stationary), ("moving", moving)))
    m, n = _check_shapes(check, dst, stationary, moving, (rows, columns))
    guards.bank(check, dst)
    guards.tiles(check, dst=dst, stationary=stationary, moving=moving)
    stationary_rows = _scale_rows(check, "stationary_scale", stationary_scale, "stationary", stationary)
    moving_rows = _scale_rows(check, "moving_scale", moving_scale, "moving", moving)

    contraction = GROUP_ELEMENTS * stationary.shape[0]
    product = multiplied(dst.dtype, (contraction, m), (contraction, n), dst.shape == (m, n), accumulates)
    scale_sets = ((stationary_rows, m), (moving_rows, n))
    compute = _matmul(forms, scale_sets, product, _wide_product(dst, accumulates))

    scales = (Column(0, tuple(stationary_rows.tolist())), Column(1, tuple(moving_rows.tolist())))
    return Plan(
        "tensor",
        costs.matmul(check.chip, m, n, 1),
        compute,
        product_elements(Column(0), accumulates, stationary_scale=scales[0], moving_scale=scales[1]),
        wants_fresh=True,
        adds_always=accumulates is True,
        touches=_touches(3, (stationary_scale, stationary_rows), (moving_scale, moving_rows)),
    )


def _matmul(
    forms: tuple[Format, ...],
    scale_sets: tuple[tuple[Array, int], ...],
    product: Callable[..., None],
    wide_product: Callable[..., None],
) -> Callable[..., None]:
    """Decode both operands and multiply; in float64 where an operand by itself would not fit into float32."""

    def compute(
        destination: Array, stationary: Array, moving: Array, stationary_scale: Array, moving_scale: Array, fresh: Fresh
    ) -> None:
        scales = [
            each[rows].view(np.uint8).reshape(len(rows), free)
            for each, (rows, free) in zip((stationary_scale, moving_scale), scale_sets, strict=True)
        ]
        wide = any(is_wide(form, each) for form, each in zip(forms, scales, strict=True))
        left, right = (
            decoded(form, values, each, np.float64 if wide else np.float32)
            for form, values, each in zip(forms, (stationary, moving), scales, strict=True)
        )
        (wide_product if wide else product)(destination, left, right, fresh)

    return compute


def _touches(before: int, *scale_operands: tuple[NkiTensor, Array]) -> tuple[Any, ...]:
    """Return the lanes of scale tensors that count, after ``before`` operands that are used in whole; () if all are."""
    if all(tensor.shape[0] == len(rows) for tensor, rows in scale_operands):
        return ()
    return (*[None] * before, *(instruction_guards.partitions_of(tensor, rows) for tensor, rows in scale_operands))


def _wide_product(dst: NkiTensor, accumulate: bool | None) -> Callable[..., None]:
    dtype = dst.dtype

    def compute(destination: Array, left: Array, right: Array, fresh: Fresh) -> None:
        deposit(destination, np.matmul(left.T, right).astype(np.float32), dtype, accumulate, fresh)

    return compute


def _row_tile(check: Check, position: Sequence[int] | None, size: Sequence[int] | None) -> tuple[int, int]:
    """NK609: the part of the array is one of rows, as wide as the array."""
    rows, columns = array_tile(check, position, size)
    if columns != check.chip.stationary_fmax:
        check.fail("NK609", f"`tile_size`={size}: the array is split by rows only here, column_size must be 128")
    return rows, columns


def _output_format(check: Check, dst: NkiTensor) -> Format:
    """Return the format of ``dst``; NK301 if quantize_mx does not make its dtype."""
    if dst.dtype not in (float8_e5m2_x4, float8_e4m3fn_x4):
        makes = "quantize_mx makes float8_e5m2_x4 or float8_e4m3fn_x4"
        remedy = "Allocate it as nl.float8_e4m3fn_x4."
        if dst.dtype is float4_e2m1fn_x4:
            remedy = "Quantise to float4_e2m1fn_x4 on the host, for example with nkitools.mx.quantize."
        check.refuse("NK301", f"{makes}, `dst` is {describe(dst)}", dst, remedy=remedy)
    return FORMATS[dst.dtype]


def _input_format(check: Check, role: str, tensor: NkiTensor) -> Format:
    """NK301: what the Tensor Engine takes as packed elements."""
    form = FORMATS.get(tensor.dtype)
    if form is None:
        names = ", ".join(map(str, FORMATS))
        message = f"`{role}` must be of a packed dtype ({names}), it is {describe(tensor)}"
        remedy = "nisa.quantize_mx makes packed elements; bytes of the host become them with .view(dtype)."
        check.refuse("NK301", message, tensor, remedy=remedy)
    return form


def _check_output_dtype(check: Check, dst: NkiTensor) -> None:
    if dst.dtype.name not in check.chip.matmul_output_dtypes:
        message = f"`dst`, {describe(dst)}, must be float32 or bfloat16: the Tensor Engine accumulates in float32"
        remedy = "Allocate the PSUM tile as float32 and cast while copying it out with nisa.tensor_copy."
        check.fail("NK303", message, dst, remedy=remedy, argument="dst")


def _check_shapes(
    check: Check, dst: NkiTensor, stationary: NkiTensor, moving: NkiTensor, array: tuple[int, int]
) -> tuple[int, int]:
    """NK102 to NK105, NK109, NK113: the contraction and the free sizes. Returns M, N."""
    m, n = stationary.layout.free_elements, moving.layout.free_elements
    check_contraction(check, stationary, moving, array[0])
    check_free_sizes(check, dst, stationary, moving, (m, n), array[1])
    _whole_quadrants(check, "stationary", stationary)
    if m % 2:
        message = f"`stationary`, {describe(stationary)}, has a free size of {m}; it must be even"
        remedy = "Add a column of zeros, and leave the last row of the result unused."
        check.fail("NK113", message, stationary, remedy=remedy)
    return m, n


def _whole_quadrants(check: Check, role: str, tensor: NkiTensor) -> None:
    """NK113: partitions come by 32."""
    if tensor.shape[0] % _QUADRANT:
        message = (
            f"`{role}`, {describe(tensor)}, has {tensor.shape[0]} partitions; they must be a multiple of {_QUADRANT}"
        )
        remedy = f"Pad the contraction dimension with zeros to a multiple of {_QUADRANT} partitions."
        check.refuse("NK113", message, tensor, remedy=remedy)


def _scale_rows(check: Check, role: str, scales: NkiTensor, data_role: str, data: NkiTensor) -> Array:
    """NK102, NK108, NK109, NK201, NK301: which rows of a scale tensor belong to the groups of its data."""
    guards.memory(check, scales, role, _SBUF)
    guards.sizes(check, (role, scales))
    if scales.dtype not in (float8_e8m0fnu, uint8):
        message = f"`{role}` must be float8_e8m0fnu or uint8, it is {describe(scales)}"
        remedy = "Scales are 8-bit codes of powers of two; reinterpret bytes with .view(nl.float8_e8m0fnu)."
        check.refuse("NK301", message, scales, remedy=remedy)
    groups = np.arange(data.shape[0] // GROUP_PARTITIONS)
    quadrant, row = np.divmod(groups, _SCALES_OF_QUADRANT)
    rows = _QUADRANT * quadrant + row
    if scales.shape[0] <= rows[-1]:
        spread = "they lie in the first 4 of every 32 rows, one quadrant after the other"
        message = (
            f"`{role}`, {describe(scales)}, has {scales.shape[0]} partitions; the scales of `{data_role}`, "
            f"{describe(data)}, need {rows[-1] + 1}: {spread}"
        )
        remedy = f"Allocate it with {data.shape[0]} partitions, and load 4 rows of scales into each quadrant."
        check.refuse("NK102", message, scales, data, remedy=remedy)
    if scales.layout.free_elements != data.layout.free_elements:
        message = (
            f"`{role}`, {describe(scales)}, has {scales.layout.free_elements} elements per partition and `{data_role}`,"
            f" {describe(data)}, has {data.layout.free_elements}; each packed element has one scale"
        )
        check.refuse("NK109", message, scales, data)
    _check_scale_start(check, (role, scales), (data_role, data))
    return rows


def _check_scale_start(check: Check, scale_operand: tuple[str, NkiTensor], data_operand: tuple[str, NkiTensor]) -> None:
    """NK108: scales lie in the quadrant of their groups, in neighbouring partitions from 0, 4, 8 or 12 on."""
    (role, scales), (data_role, data) = scale_operand, data_operand
    quadrant, offset = divmod(scales.layout.start_partition, _QUADRANT)
    begins = f"`{role}`, {describe(scales)}, begins at partition {scales.layout.start_partition}"
    if scales.shape[0] > 1 and scales.layout.partition_step > 1:
        check.fail("NK108", f"`{role}`, {describe(scales)}, leaves out partitions between its rows", scales)
    if offset not in _SCALE_OFFSETS:
        message = f"{begins}; scales may begin at partition 0, 4, 8 or 12 of a quadrant (32 partitions)"
        remedy = "Slice the tensor of scales from row 0, 4, 8 or 12 of a quadrant on."
        check.fail("NK108", message, scales, remedy=remedy)
    first = data.layout.start_partition
    if quadrant != first // _QUADRANT:
        message = (
            f"{begins} and `{data_role}`, {describe(data)}, at {first}; scales lie in the quadrant of their groups"
        )
        remedy = f"Keep them in the quadrant that begins at partition {first - first % _QUADRANT}."
        check.fail("NK108", message, scales, data, remedy=remedy)
