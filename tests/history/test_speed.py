"""NK701 to NK704: hints that speak once a line, where it matters, and never of small kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from tests.history.test_races import line_of


def hints(kernel: Any, *arguments: Any, **keywords: Any) -> list[tuple[str, int, str]]:
    run = nkitools.simulate(kernel, *arguments, rules="report", **keywords)
    assert all(each.severity == "hint" for each in run.findings)
    return [(each.rule, each.line, each.message) for each in run.findings]


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


# --- NK701 -----------------------------------------------------------------------------------------------------------


def loaded(x: Any, count: int, wide: int, others: int) -> Any:
    """So many DMAs of so many float32 elements of a partition, others of 512, and one that stores."""
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 512), nl.float32)
    for _ in range(others):
        nisa.dma_copy(dst=tile, src=x)
    for _ in range(count):
        nisa.dma_copy(dst=tile[:, 0:wide], src=x[:, 0:wide])  # narrow
    nisa.dma_copy(dst=out, src=tile)
    return out


def test_many_narrow_transfers_are_reported_once() -> None:
    """How many of the run's DMAs and descriptors they are, and how few bytes each moves."""
    line = line_of(loaded, "# narrow")
    assert hints(loaded, ones(128, 512), 300, 16, 3) == [
        (
            "NK701",
            line,
            "300 of the run's 304 DMAs and 38,400 of their 38,912 descriptors are this line's, of 64 bytes each; below "
            "256 bytes in a row overhead takes most of the time",
        )
    ]


@pytest.mark.parametrize(("count", "wide", "others"), [(300, 64, 1), (255, 16, 1), (256, 16, 800)])
def test_transfers_that_do_not_matter_are_not_reported(count: int, wide: int, others: int) -> None:
    """256 bytes in a row, fewer than 256 transfers, or less than a quarter of all."""
    assert hints(loaded, ones(128, 512), count, wide, others) == []


def test_one_transfer_of_scattered_elements_is_many_descriptors() -> None:
    """A transposing access pattern moves one element at a time, however few instructions it is."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((128, 512), x.dtype, buffer=nl.shared_hbm)
        tile = nl.ndarray((128, 512), nl.float32)
        nisa.dma_copy(dst=tile, src=x.permute((1, 0)))  # scattered
        nisa.dma_copy(dst=out, src=tile)
        return out

    (hint,) = hints(kernel, ones(512, 128))
    assert hint[:2] == ("NK701", line_of(kernel, "# scattered"))
    assert "1 of the run's 2 DMAs and 65,536 of their 65,664 descriptors are this line's, of 4 bytes each" in hint[2]


# --- NK702 -----------------------------------------------------------------------------------------------------------


def scaled(x: Any, partitions: int, count: int, others: int) -> Any:
    """So many instructions on so many partitions, and others on all; then the Scalar Engine works on a few."""
    out = nl.ndarray((128, 512), x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    few = tile[0:partitions, :]
    for _ in range(count):
        nisa.tensor_scalar(dst=few, data=few, op0=nl.multiply, operand0=1.0)  # few
    for _ in range(others):
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=1.0)
    nisa.dma_copy(dst=out, src=tile)
    return out


def test_idle_lanes_are_reported_with_their_share() -> None:
    """Half of the lanes or fewer, a quarter of the engine's cycles or more."""
    line = line_of(scaled, "# few")
    assert hints(scaled, ones(128, 512), 64, 300, 100) == [
        (
            "NK702",
            line,
            "300 instructions of this line use 64 of the 128 lanes of the Vector Engine and take 75% of its cycles; on "
            "all partitions each would take no longer",
        )
    ]


@pytest.mark.parametrize(("partitions", "count", "others"), [(96, 300, 0), (64, 255, 0), (64, 256, 1000)])
def test_lanes_that_do_not_matter_are_not_reported(partitions: int, count: int, others: int) -> None:
    """More than half of the lanes, few instructions, or a small part of the engine's work."""
    assert hints(scaled, ones(128, 512), partitions, count, others) == []


def test_an_engine_that_is_mostly_idle_is_not_reported() -> None:
    """The Vector Engine's few lanes do not matter while the Scalar Engine works four times as long."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((128, 512), x.dtype, buffer=nl.shared_hbm)
        tile, row = nl.load(x), nl.load(x[0:1, 0:128])
        for _ in range(300):
            nisa.tensor_scalar(dst=row, data=row, op0=nl.multiply, operand0=1.0)
            nisa.activation(dst=tile, op=nl.relu, data=tile)
        nisa.tensor_copy(dst=tile[0:1, 0:128], src=row)
        nisa.dma_copy(dst=out, src=tile)
        return out

    assert hints(kernel, ones(128, 512)) == []


# --- NK703 and NK704 -------------------------------------------------------------------------------------------------


def multiplied(a: Any, b: Any, count: int, dtype: Any, rows: int, keywords: dict[str, Any]) -> Any:
    out = nl.ndarray((128, 128), nl.float32, buffer=nl.shared_hbm)
    left, right = nl.copy(nl.load(a), dtype=dtype), nl.copy(nl.load(b), dtype=dtype)
    result = nl.ndarray((128, 128), nl.float32, buffer=nl.psum)
    for k in range(count):
        nisa.nc_matmul(result, left[0:rows, :], right[0:rows, :], accumulate=k > 0, **keywords)  # multiplies
    nisa.dma_copy(dst=out, src=nl.copy(result))
    return out


MATRICES = ones(128, 128), ones(128, 128)
LINE = line_of(multiplied, "# multiplies")


def test_float32_is_reported_with_its_passes() -> None:
    """Four passes each; bfloat16 takes one."""
    assert hints(multiplied, *MATRICES, 256, nl.float32, 128, {}) == [
        (
            "NK703",
            LINE,
            "256 matmuls of this line multiply float32, in 4 passes each, and take 100% of the Tensor Engine's cycles",
        )
    ]
    assert hints(multiplied, *MATRICES, 256, nl.bfloat16, 128, {}) == []
    assert hints(multiplied, *MATRICES, 255, nl.float32, 128, {}) == []


def test_float32_of_ones_and_zeros_takes_two_passes() -> None:
    """The hint of nc_matmul that an operand is made of ones and zeros is already taken."""
    assert hints(multiplied, *MATRICES, 256, nl.float32, 128, {"is_stationary_onezero": True}) == []


def test_an_idle_array_is_reported_with_what_is_used() -> None:
    """Half of the processing elements or fewer; of 96 of 128 rows nothing is said."""
    assert hints(multiplied, *MATRICES, 256, nl.bfloat16, 64, {}) == [
        (
            "NK704",
            LINE,
            "256 matmuls of this line use 50% of the Tensor Engine's 128 x 128 processing elements and take 100% of "
            "its cycles",
        )
    ]
    assert hints(multiplied, *MATRICES, 256, nl.bfloat16, 96, {}) == []


def test_matmuls_that_share_the_array_are_left_out() -> None:
    """In tiling mode others run beside them."""
    tiled = {"tile_position": (0, 0), "tile_size": (64, 128)}
    assert hints(multiplied, *MATRICES, 256, nl.bfloat16, 64, tiled) == []


def test_nothing_is_judged_where_rules_are_off() -> None:
    """Neither hints nor anything else."""
    run = nkitools.simulate(multiplied, *MATRICES, 256, nl.float32, 64, {}, rules="off")
    assert run.findings == []


def test_hints_fail_no_run() -> None:
    """Not even where warnings do."""
    run = nkitools.simulate(multiplied, *MATRICES, 256, nl.float32, 64, {}, rules="strict")
    assert [each.rule for each in run.findings] == ["NK703", "NK704"]
