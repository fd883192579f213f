"""Sums in PSUM that are overwritten before anybody has read them (NK506)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import neuronxcc.nki as legacy
import neuronxcc.nki.language as legacy_nl
import numpy as np
import pytest

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from nkitools.rules.finding import Finding

ONES = np.ones((32, 32), np.float32)


def told(kernel: Callable[..., Any], *arrays: Any, chip: str = "trn2") -> list[Finding]:
    """The findings of a run, all of which are NK506."""
    run = nkitools.simulate(kernel, *(arrays or (ONES,)), rules="report", chip=chip)
    assert {finding.rule for finding in run.findings} <= {"NK506"}
    return run.findings


def product(shape: tuple[int, int] = (32, 32), address: Any = None) -> Any:
    """A tile in PSUM."""
    return nl.ndarray(shape, nl.float32, buffer=nl.psum, address=address)


def add(dst: Any, data: Any, accumulate: bool | None = None) -> None:
    """``dst`` = (or +=) ``data`` times its transpose."""
    nisa.nc_matmul(
        dst=dst, stationary=data[:, 0 : dst.shape[0]], moving=data[:, 0 : dst.shape[1]], accumulate=accumulate
    )


def read(psum: Any) -> None:
    """Copy a tile out of PSUM."""
    nisa.tensor_copy(dst=nl.ndarray(psum.shape, nl.float32, buffer=nl.sbuf), src=psum)


# --- findings --------------------------------------------------------------------------------------------------------


def test_a_matmul_that_does_not_add_in_its_loop() -> None:
    """accumulate=False in each turn: the sum before is lost, from the second turn on."""

    def kernel(x: Any) -> None:
        data, sums = nl.load(x), product()
        for k in range(3):
            nisa.nc_matmul(dst=sums, stationary=data, moving=data, accumulate=k < 0)
        read(sums)

    findings = told(kernel)
    assert [place.loops for each in findings for place in each.places] == [{"k": 1}, {"k": 2}]
    assert findings[0].message.startswith("nc_matmul: the sum of a matmul in tensor `sums` (PSUM, float32 [32, 32])")
    assert "begun in line" in findings[0].message


def test_a_tile_that_is_used_again_before_it_was_copied() -> None:
    """By another sum, a fill, a transpose."""

    def kernel(x: Any) -> None:
        data, sums = nl.load(x), product()
        for k in range(4):
            add(sums, data, accumulate=k > 0)
        add(sums, data, accumulate=False)  # 1: four matmuls
        nisa.memset(dst=sums, value=0)  # 2
        nisa.nc_matmul(dst=sums, stationary=data, moving=data)
        nisa.nc_transpose(dst=sums, data=data)  # 3

    findings = told(kernel)
    assert [each.message.split(":")[0] for each in findings] == ["nc_matmul", "memset", "nc_transpose"]
    assert "the sum of 4 matmuls" in findings[0].message


def test_half_of_a_sum_is_lost_to_a_matmul() -> None:
    """What overlaps is enough."""

    def kernel(x: Any) -> None:
        data, sums = nl.load(x), product()
        add(sums, data, accumulate=False)
        add(sums[:, 0:16], data, accumulate=False)

    assert len(told(kernel)) == 1


def test_two_tiles_at_one_address() -> None:
    """The banks of an allocated kernel are used in turns: a bank that comes again must have been read."""

    def kernel(x: Any) -> None:
        data = nl.load(x)
        for k in range(3):
            sums = product(address=(0, 2048 * (k % 2)))
            add(sums, data)
            if k:
                read(sums)

    (finding,) = told(kernel)
    assert finding.loops == {"k": 2}
    assert "at the same address" in finding.message


# --- none ------------------------------------------------------------------------------------------------------------


def test_sums_that_are_read() -> None:
    """By any instruction, in part or in place."""

    def kernel(x: Any) -> None:
        data, sums = nl.load(x), product()
        for k in range(4):
            add(sums, data, accumulate=False)
            if k == 0:
                read(sums)
            elif k == 1:
                read(sums[0:1, 3:4])
            elif k == 2:
                nisa.tensor_scalar(dst=sums, data=sums, op0=nl.multiply, operand0=2.0)
            else:
                nisa.tensor_tensor(dst=data, data1=data, data2=sums, op=nl.add)

    assert told(kernel) == []


@pytest.mark.parametrize("chip", ["trn1", "trn2", "trn3"])
def test_zeros_that_matmuls_add_to(chip: str) -> None:
    """AWS's own idiom; and the zeros of the next sum come after the copy of this one."""

    def kernel(x: Any) -> None:
        data, sums = nl.load(x), product()
        for _ in range(2):
            nisa.memset(dst=sums, value=0)
            for _ in range(3):
                add(sums, data)
            read(sums)

    assert told(kernel, chip=chip) == []


def test_parts_beside_each_other() -> None:
    """Rows, columns, and columns in turns, whose bounds overlap and whose elements do not."""

    def kernel(x: Any) -> None:
        data, sums = nl.load(x), product()
        add(sums[:, 0:16], data, accumulate=False)
        add(sums[:, 16:32], data, accumulate=False)
        read(sums)
        add(sums[:, 0:32:2], data, accumulate=False)
        add(sums[:, 1:32:2], data, accumulate=False)
        nisa.memset(dst=sums[:, 0:4], value=0)  # a part is masked, and the rest is still to be read
        read(sums)

    assert told(kernel) == []


def test_a_read_of_other_elements_does_not_count() -> None:
    """Those of odd columns are still unread."""

    def kernel(x: Any) -> None:
        data, sums = nl.load(x), product()
        nisa.memset(dst=sums, value=0)
        add(sums[:, 1:32:2], data)
        read(sums[:, 0:32:2])
        add(sums[:, 1:32:2], data, accumulate=False)

    assert len(told(kernel)) == 1


def test_the_last_sum_may_stay_unread() -> None:
    """Nothing has overwritten it."""

    def kernel(x: Any) -> None:
        add(product(), nl.load(x))

    assert told(kernel) == []


def test_legacy_sums() -> None:
    """``+=`` on zeros, and a tile of its own in each turn."""

    @legacy.jit
    def kernel(x: Any) -> Any:
        out = legacy_nl.ndarray((32, 32), dtype=x.dtype, buffer=legacy_nl.shared_hbm)
        data = legacy_nl.load(x)
        for _ in legacy_nl.sequential_range(2):
            sums = legacy_nl.zeros((32, 32), dtype=legacy_nl.float32, buffer=legacy_nl.psum)
            for _ in legacy_nl.affine_range(3):
                sums += legacy_nl.matmul(data, data, transpose_x=True)
            legacy_nl.store(out, legacy_nl.copy(sums))
        return out

    run = nkitools.simulate(kernel, ONES, rules="report")
    assert [each.rule for each in run.findings] == ["NK506"]  # the first store is replaced by the second
    np.testing.assert_array_equal(run.outputs, np.full((32, 32), 96.0))
