"""What nisa.quantize_mx and nisa.nc_matmul_mx do not take."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from tests.isa.issued import Tile, bank, empty, inside, issue, placed, refusal, tile
from tests.isa.test_docstrings import named_rules

X4, E5, FP4, E8M0 = nl.float8_e4m3fn_x4, nl.float8_e5m2_x4, nl.float4_e2m1fn_x4, nl.float8_e8m0fnu


def ones(*shape: int, dtype: Any = nl.bfloat16, memory: str = "sbuf", view: Any = None) -> Tile:
    """A written operand."""
    made = tile(np.ones(shape, np.uint32).astype(dtype.dtype), memory, dtype)
    return made if view is None else made.seen(view)


def elements(*shape: int, dtype: Any = X4, memory: str = "sbuf", view: Any = None) -> Tile:
    """Packed elements, all zero."""
    made = tile(np.zeros(shape, dtype.dtype), memory, dtype)
    return made if view is None else made.seen(view)


def scales(*shape: int, dtype: Any = nl.uint8, memory: str = "sbuf", view: Any = None) -> Tile:
    """Scales, all 2**0."""
    made = tile(np.full(shape, 127, np.uint8).view(dtype.dtype), memory, dtype)
    return made if view is None else made.seen(view)


# --- quantize_mx -----------------------------------------------------------------------------------------------------

DST, SRC, SCALE = empty((64, 8), X4), ones(64, 32), empty((64, 8), nl.uint8)
QUANTISING: dict[str, tuple[str, str, tuple[Any, ...]]] = {
    "a source in PSUM": ("NK201", "`src`", (DST, ones(64, 32, memory="psum"), SCALE)),
    "a result in PSUM": ("NK201", "`dst`", (empty((64, 8), X4, "psum"), SRC, SCALE)),
    "scales in PSUM": ("NK201", "`dst_scale`", (DST, SRC, empty((64, 8), nl.uint8, "psum"))),
    "a source in HBM": ("NK201", "`src`", (DST, ones(64, 32, memory="shared_hbm"), SCALE)),
    "float32": ("NK301", "`src`", (DST, ones(64, 32, dtype=nl.float32), SCALE)),
    "MXFP4": ("NK301", "`dst`", (empty((64, 8), FP4), SRC, SCALE)),
    "float8 that is not packed": ("NK301", "`dst`", (empty((64, 8), nl.float8_e4m3fn), SRC, SCALE)),
    "scales of int8": ("NK301", "`dst_scale`", (DST, SRC, empty((64, 8), nl.int8))),
    "48 partitions": ("NK113", "`src`", (empty((48, 8), X4), ones(48, 32), empty((48, 8), nl.uint8))),
    "160 partitions": ("NK101", "`src`", (empty((160, 8), X4), ones(160, 32), empty((160, 8), nl.uint8))),
    "30 elements": ("NK113", "`src`", (DST, ones(64, 30), SCALE)),
    "other partitions": ("NK102", "`dst`", (empty((32, 8), X4), SRC, SCALE)),
    "as many packed as plain elements": ("NK109", "`dst`", (empty((64, 32), X4), SRC, SCALE)),
    "contiguous scales": ("NK102", "first 4 of every 32", (DST, SRC, empty((8, 8), nl.uint8))),
    "scales wider than the result": ("NK109", "`dst_scale`", (DST, SRC, empty((64, 9), nl.uint8))),
    "scales at offset 2": ("NK108", "`dst_scale`", (DST, SRC, empty((66, 8), nl.uint8, view=lambda t: t[2:]))),
    "scales at offset 16": ("NK108", "`dst_scale`", (DST, SRC, empty((80, 8), nl.uint8, view=lambda t: t[16:]))),
    "scales of another quadrant": ("NK108", "`dst_scale`", (DST, SRC, empty((96, 8), nl.uint8, view=lambda t: t[32:]))),
    "every second row of scales": (
        "NK108",
        "`dst_scale`",
        (DST, SRC, empty((128, 8), nl.uint8, view=lambda t: t[::2])),
    ),
    "a source that begins at partition 16": (
        "NK108",
        "`src`",
        (empty((32, 8), X4), ones(64, 32, view=lambda t: t[16:48]), empty((32, 8), nl.uint8)),
    ),
    "an unwritten source": ("NK401", "never written", (DST, empty((64, 32), nl.bfloat16), SCALE)),
}


@pytest.mark.parametrize("case", QUANTISING)
def test_what_quantize_mx_refuses(case: str) -> None:
    """One finding, of a rule of the docstring, that names the operand."""
    rule, named, args = QUANTISING[case]
    finding = refusal(nisa.quantize_mx, *args, chip="trn3")
    assert (finding.rule, named in finding.message) == (rule, True), finding.text()
    assert rule in named_rules(nisa.quantize_mx.__doc__) | {"NK401"}


# --- nc_matmul_mx ----------------------------------------------------------------------------------------------------

LEFT, RIGHT, LEFT_SCALE, RIGHT_SCALE = elements(64, 8), elements(64, 6), scales(64, 8), scales(64, 6)
OUT = bank((8, 6))


def call(**changed: Any) -> dict[str, Any]:
    """A good call with some of its arguments changed."""
    good = {
        "dst": OUT,
        "stationary": LEFT,
        "moving": RIGHT,
        "stationary_scale": LEFT_SCALE,
        "moving_scale": RIGHT_SCALE,
    }
    return {**good, **changed}


TALL = {"stationary": elements(256, 8), "stationary_scale": scales(256, 8)}
MATMULS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "stationary in PSUM": ("NK201", "`stationary`", call(stationary=elements(64, 8, memory="psum"))),
    "scales in HBM": ("NK201", "`moving_scale`", call(moving_scale=scales(64, 6, memory="shared_hbm"))),
    "a result in SBUF": ("NK201", "`dst`", call(dst=empty((8, 6)))),
    "bfloat16 operands": ("NK301", "`moving`", call(moving=ones(64, 6))),
    "bytes": ("NK301", ".view(dtype)", call(moving=ones(64, 6, dtype=nl.uint32))),
    "float32 scales": ("NK301", "`moving_scale`", call(moving_scale=ones(64, 6, dtype=nl.float32))),
    "a float16 result": ("NK303", "`dst`", call(dst=bank((8, 6), nl.float16))),
    "256 partitions": ("NK103", "`stationary`", call(**TALL, moving=elements(256, 6), moving_scale=scales(256, 6))),
    "more partitions than rows": ("NK103", "`stationary`", call(tile_position=(32, 0), tile_size=(32, 128))),
    "130 columns": (
        "NK104",
        "`stationary`",
        call(stationary=elements(64, 130), stationary_scale=scales(64, 130), dst=bank((130, 6))),
    ),
    "4097 moving columns": (
        "NK105",
        "`moving`",
        call(moving=elements(64, 4097), moving_scale=scales(64, 4097), dst=bank((8, 4097))),
    ),
    "8193 moving columns into bfloat16": (
        "NK105",
        "`moving`",
        call(moving=elements(64, 8193), moving_scale=scales(64, 8193), dst=bank((8, 8193), nl.bfloat16)),
    ),
    "other partitions": ("NK102", "`moving`", call(moving=elements(32, 6), moving_scale=scales(32, 6))),
    "48 partitions": (
        "NK113",
        "`stationary`",
        call(
            stationary=elements(48, 8),
            stationary_scale=scales(48, 8),
            moving=elements(48, 6),
            moving_scale=scales(48, 6),
        ),
    ),
    "an odd number of columns": (
        "NK113",
        "must be even",
        call(stationary=elements(64, 7), stationary_scale=scales(64, 7), dst=bank((7, 6))),
    ),
    "another result": ("NK109", "`dst`", call(dst=bank((6, 8)))),
    "contiguous scales": ("NK102", "`stationary_scale`", call(stationary_scale=scales(8, 8))),
    "too few scales": ("NK109", "`stationary_scale`", call(stationary_scale=scales(64, 4))),
    "scales at offset 1": ("NK108", "`moving_scale`", call(moving_scale=scales(65, 6, view=lambda t: t[1:]))),
    "scales of another quadrant": ("NK108", "`moving_scale`", call(moving_scale=scales(128, 6, view=lambda t: t[64:]))),
    "contiguous scales of a later quadrant": (
        "NK108",
        "`stationary_scale`",
        call(
            stationary=elements(128, 8, view=lambda t: t[32:64]),
            stationary_scale=scales(16, 8, view=lambda t: t[4:8]),
            moving=elements(32, 6),
            moving_scale=scales(4, 6),
        ),
    ),
    "unwritten scales": ("NK401", "never written", call(moving_scale=empty((64, 6), nl.uint8))),
    "a part of the columns": ("NK609", "column_size", call(tile_position=(0, 0), tile_size=(64, 64))),
    "a size without a position": ("NK609", "`tile_position`", call(tile_size=(64, 128))),
    "accumulate of a number": ("NK609", "`accumulate`", call(accumulate=1)),
    "no tensor": ("NK609", "`moving_scale`", call(moving_scale=127)),
}


@pytest.mark.parametrize("case", MATMULS)
def test_what_nc_matmul_mx_refuses(case: str) -> None:
    """One finding, of a rule of the docstring, that names the operand."""
    rule, named, kwargs = MATMULS[case]
    finding = refusal(nisa.nc_matmul_mx, **kwargs, chip="trn3")
    assert (finding.rule, named in f"{finding.message} {finding.remedy}") == (rule, True), finding.text()
    assert rule in named_rules(nisa.nc_matmul_mx.__doc__) | {"NK401"}


def test_the_calls_that_are_changed_are_good() -> None:
    """Else they would be refused for another reason."""
    assert issue(nisa.quantize_mx, DST, SRC, SCALE, chip="trn3").rules == []
    assert (issue(nisa.nc_matmul_mx, **call(), chip="trn3").dst == 0).all()


@pytest.mark.parametrize("chip", ["trn1", "trn2"])
def test_earlier_chips_have_neither(chip: str) -> None:
    """NK606, and nothing else, whatever else is amiss there."""
    for finding in (
        refusal(nisa.quantize_mx, DST, SRC, SCALE, chip=chip),
        refusal(nisa.nc_matmul_mx, **call(dst=bank((8, 6), nl.bfloat16)), chip=chip),
    ):
        assert (finding.rule, "NeuronCore-v4" in finding.message) == ("NK606", True)


def test_unwritten_scales_are_reported_only_where_they_count() -> None:
    """NK401 for the first four rows of a quadrant; the others may stay unwritten."""

    def body(rows: slice) -> None:
        made = placed(empty((64, 6), nl.uint8))
        nisa.dma_copy(made[0:4], placed(scales(4, 6, memory="shared_hbm")))
        nisa.dma_copy(made[rows], placed(scales(4, 6, memory="shared_hbm")))
        operands = [placed(each) for each in (OUT, LEFT, RIGHT, LEFT_SCALE)]
        nisa.nc_matmul_mx(*operands, made)

    inside(lambda: body(slice(32, 36)), chip="trn3")
    with pytest.raises(nkitools.KernelError, match="6 of 384 elements") as raised:
        inside(lambda: body(slice(33, 37)), chip="trn3")
    assert raised.value.finding.rule == "NK401"


SIGNATURES = {
    "quantize_mx": "(dst, src, dst_scale, name=None)",
    "nc_matmul_mx": (
        "(dst, stationary, moving, stationary_scale, moving_scale, tile_position=None, tile_size=None, "
        "accumulate=None, name=None)"
    ),
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_the_signature_is_the_documented_one(name: str) -> None:
    """Names, order and defaults of NKI 0.6."""
    assert str(inspect.signature(getattr(nisa, name))) == SIGNATURES[name]
