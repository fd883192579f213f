"""nisa.nc_matmul against float64 products: accumulation, banks, modes, views."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from tests.isa.issued import Tile, bank, inside, issue, placed, tile
from tests.isa.oracles import float64, held, sample, small_integers

DOUBLE_ROW = nisa.matmul_perf_mode.double_row
WIDE = (nl.float32, nl.tfloat32)  # these go with each other only
INPUTS = (*WIDE, nl.bfloat16, nl.float16, nl.float8_e4m3, nl.float8_e5m2)


# --- values ----------------------------------------------------------------------------------------------------------


@given(st.integers(1, 128), st.integers(1, 128), st.integers(1, 512), st.integers(0, 2**32 - 2))
def test_the_product_is_stationary_transposed_times_moving(k: int, m: int, n: int, seed: int) -> None:
    """[K, M] and [K, N] give [M, N], exactly for small integers."""
    stationary, moving = small_integers((k, m), seed), small_integers((k, n), seed + 1)
    result = issue(nisa.nc_matmul, bank((m, n)), tile(stationary), tile(moving)).dst
    np.testing.assert_array_equal(result, float64(stationary).T @ float64(moving))


@pytest.mark.parametrize(
    ("stationary", "moving"), [(x, y) for x in INPUTS for y in INPUTS if (x in WIDE) == (y in WIDE)], ids=str
)
def test_products_are_exact_and_sums_are_float32(stationary: Any, moving: Any) -> None:
    """Any two dtypes that go together; the error is that of summing 128 products in float32."""
    x, y = sample((128, 32), stationary, 1), sample((128, 48), moving, 2)
    result = issue(nisa.nc_matmul, bank((32, 48)), tile(x, dtype=stationary), tile(y, dtype=moving)).dst
    magnitude = np.abs(float64(x)).T @ np.abs(float64(y))
    np.testing.assert_array_less(np.abs(result - float64(x).T @ float64(y)), 128 * 2.0**-24 * magnitude)


def test_two_thousand_bfloat16_ones_make_two_thousand() -> None:
    """Sixteen accumulated matmuls of 128 rows: PSUM adds in float32."""
    ones = np.ones((128, 1), nl.bfloat16.dtype)

    def body() -> np.ndarray:
        dst, x = placed(bank((1, 1))), placed(tile(ones))
        for _ in range(16):
            nisa.nc_matmul(dst, x, x)
        return np.array(dst.array)

    assert inside(body) == 2048


@given(st.integers(0, 2**32 - 3), st.integers(-3, 3), st.integers(-3, 3))
def test_the_product_is_linear_in_the_moving_operand(seed: int, a: int, b: int) -> None:
    """Exactly so for small integers."""
    w, x, y = small_integers((64, 16), seed), small_integers((64, 20), seed + 1), small_integers((64, 20), seed + 2)

    def product(moving: np.ndarray) -> np.ndarray:
        return issue(nisa.nc_matmul, bank((16, 20)), tile(w), tile(moving)).dst

    np.testing.assert_array_equal(product(a * x + b * y), a * product(x) + b * product(y))


@given(st.integers(1, 64), st.integers(1, 64), st.integers(0, 2**32 - 2))
def test_swapping_the_operands_transposes_the_product(m: int, n: int, seed: int) -> None:
    """``(S.T @ M).T`` is ``M.T @ S``."""
    x, y = small_integers((32, m), seed), small_integers((32, n), seed + 1)
    forth = issue(nisa.nc_matmul, bank((m, n)), tile(x), tile(y)).dst
    back = issue(nisa.nc_matmul, bank((n, m)), tile(y), tile(x)).dst
    np.testing.assert_array_equal(forth.T, back)


def test_views_and_several_free_dimensions() -> None:
    """Permuted, stepped and broadcast operands, destinations of several free dimensions, a part of a larger tile."""
    x, y = small_integers((32, 4, 6), 1), small_integers((32, 10), 2)
    stationary = tile(x, view=lambda t: t.permute((0, 2, 1)))
    moving = tile(y, view=lambda t: t[:, ::2])
    expected = float64(x.transpose(0, 2, 1).reshape(32, 24)).T @ float64(y[:, ::2])
    np.testing.assert_array_equal(issue(nisa.nc_matmul, bank((24, 5)), stationary, moving).dst, expected)
    result = issue(nisa.nc_matmul, bank((24, 5, 1)), stationary, moving).dst
    np.testing.assert_array_equal(result[:, :, 0], expected)
    target = Tile((24, 40), None, nl.float32, "psum", lambda t: t[:, 10:20:2])
    np.testing.assert_array_equal(issue(nisa.nc_matmul, target, stationary, moving).dst, expected)
    spread = tile(y[:, :1], view=lambda t: t.broadcast(1, 3))
    np.testing.assert_array_equal(
        issue(nisa.nc_matmul, bank((10, 3)), tile(y), spread).dst,
        np.repeat(float64(y).T @ float64(y[:, :1]), 3, axis=1),
    )


@pytest.mark.parametrize("chip", ["trn1", "trn2", "trn3"])
def test_each_bank_takes_its_own_product(chip: str) -> None:
    """Eight matmuls of 512 columns into one tile of all of PSUM; the accumulation of one does not touch the others."""
    x, y = small_integers((16, 4), 1), small_integers((16, 512), 2)

    def body() -> np.ndarray:
        dst, stationary, moving = placed(bank((4, 8 * 512))), placed(tile(x)), placed(tile(y))
        for number in range(8):
            for _ in range(number + 1):
                nisa.nc_matmul(dst[:, 512 * number : 512 * (number + 1)], stationary, moving)
        return np.array(dst.array)

    product = float64(x).T @ float64(y)
    np.testing.assert_array_equal(inside(body, chip=chip), np.hstack([number * product for number in range(1, 9)]))


# --- accumulation ----------------------------------------------------------------------------------------------------

ONES = np.ones((8, 4), np.float32)


def accumulated(flags: list[Any], dtype: Any = nl.float32, chip: str = "trn2") -> np.ndarray:
    """PSUM after one matmul of value 8 for each flag."""

    def body() -> np.ndarray:
        dst, x = placed(bank((4, 4), dtype)), placed(tile(ONES))
        for flag in flags:
            nisa.nc_matmul(dst, x, x, accumulate=flag)
        return np.array(dst.array)

    return inside(body, chip=chip)


@pytest.mark.parametrize(
    ("flags", "value"),
    [
        ([None], 8),
        ([None, None, None], 24),
        ([False, True, True], 24),
        ([False, False], 8),
        ([False, None], 16),
        ([None, True], 16),
        ([None, False], 8),
        ([np.False_, np.True_, np.False_], 8),
        ([np.int64(i) > 0 for i in range(3)], 24),
    ],
    ids=str,
)
def test_accumulate(flags: list[Any], value: float) -> None:
    """False overwrites, True adds, None overwrites what was never written and adds elsewhere; NumPy's bools count."""
    assert (accumulated(flags) == value).all()


def test_none_overwrites_just_the_part_that_was_never_written() -> None:
    """Half of the tile holds a product already."""

    def body() -> np.ndarray:
        dst, x = placed(bank((4, 4))), placed(tile(ONES))
        nisa.nc_matmul(dst[:, 0:2], x, x[:, 0:2])
        nisa.nc_matmul(dst, x, x)
        return np.array(dst.array)

    np.testing.assert_array_equal(inside(body), [[16, 16, 8, 8]] * 4)


def test_bfloat16_psum_of_neuron_core_v4_rounds_at_each_write() -> None:
    """256 + 1 in bfloat16 is 256: the sum is formed in float32 and rounded on its way to PSUM."""
    x = np.zeros((8, 4), np.float32)
    x[0] = 16
    one = np.zeros((8, 4), np.float32)
    one[0] = 1

    def body() -> np.ndarray:
        dst, big, small = placed(bank((4, 4), nl.bfloat16)), placed(tile(x)), placed(tile(one))
        nisa.nc_matmul(dst, big, big)
        nisa.nc_matmul(dst, small, small)
        return np.array(dst.array)

    assert (inside(body, chip="trn3").astype(np.float32) == 256).all()


# --- modes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chip", ["trn2", "trn3"])
@pytest.mark.parametrize("dtypes", [(nl.float8_e4m3, nl.float8_e4m3), (nl.float8_e5m2, nl.float8_e4m3)], ids=str)
def test_double_row_contracts_two_rows_a_partition(dtypes: tuple[Any, Any], chip: str) -> None:
    """[K, 2, M] and [K, 2, N]: the contraction runs over partitions and the first free dimension."""
    x, y = held(small_integers((128, 2, 16), 1), dtypes[0]), held(small_integers((128, 2, 24), 2), dtypes[1])
    expected = np.einsum("kpm,kpn->mn", float64(x), float64(y))
    issued = issue(nisa.nc_matmul, bank((16, 24)), tile(x), tile(y), perf_mode=DOUBLE_ROW, chip=chip)
    np.testing.assert_array_equal(issued.dst, expected)


@pytest.mark.parametrize(
    ("chip", "position", "size"),
    [
        ("trn1", (64, 0), (64, 128)),
        ("trn1", (0, 64), (128, 64)),
        ("trn2", (96, 64), (32, 64)),
        ("trn3", [32, 96], [32, 32]),
        ("trn2", (0, 0), (128, 128)),
    ],
    ids=str,
)
def test_tiling_mode_multiplies_as_ever(chip: str, position: Any, size: Any) -> None:
    """Where in the array the product is formed does not change it."""
    x, y = small_integers((32, 32), 1), small_integers((32, 100), 2)
    issued = issue(nisa.nc_matmul, bank((32, 100)), tile(x), tile(y), tile_position=position, tile_size=size, chip=chip)
    np.testing.assert_array_equal(issued.dst, float64(x).T @ float64(y))


NOT_FINITE = np.array([[1, np.nan, 3], [np.inf, 5, -np.inf], [7, 8, 1e-45]], np.float32)


@pytest.mark.parametrize("chip", ["trn2", "trn3"])
def test_transpose_mode_is_bit_accurate(chip: str) -> None:
    """NaN, infinities and the bits of bfloat16, moved by an identity or a permutation."""
    eye = np.eye(3, dtype=np.float32)
    issued = issue(nisa.nc_matmul, bank((3, 3)), tile(NOT_FINITE), tile(eye), is_transpose=True, chip=chip)
    np.testing.assert_array_equal(issued.dst.view(np.uint32), NOT_FINITE.T.copy().view(np.uint32))
    shuffled = issue(nisa.nc_matmul, bank((3, 2)), tile(NOT_FINITE), tile(eye[:, [2, 0]]), is_transpose=True, chip=chip)
    np.testing.assert_array_equal(shuffled.dst, NOT_FINITE[[2, 0]].T)
    half = NOT_FINITE.astype(nl.bfloat16.dtype)
    issued = issue(
        nisa.nc_matmul,
        bank((3, 3), nl.bfloat16),
        tile(half),
        tile(eye.astype(nl.bfloat16.dtype)),
        is_transpose=True,
        chip=chip,
    )
    np.testing.assert_array_equal(issued.dst.view(np.uint16), half.T.copy().view(np.uint16))


def test_transpose_mode_of_neuron_core_v2_spreads() -> None:
    """There the flag is for the profiler: 0 times infinity is NaN."""
    x = np.array([[1, 2], [np.inf, 4]], np.float32)
    result = issue(
        nisa.nc_matmul, bank((2, 2)), tile(x), tile(np.eye(2, dtype=np.float32)), is_transpose=True, chip="trn1"
    ).dst
    np.testing.assert_array_equal(result, [[np.nan, np.inf], [2, 4]])


def test_transpose_mode_accumulates_like_any_matmul() -> None:
    """``accumulate`` means what it means elsewhere."""
    x, eye = small_integers((4, 4), 1), np.eye(4, dtype=np.float32)

    def body() -> list[np.ndarray]:
        dst, data, identity = placed(bank((4, 4))), placed(tile(x)), placed(tile(eye))
        seen = []
        for flag in (None, None, False):
            nisa.nc_matmul(dst, data, identity, is_transpose=True, accumulate=flag)
            seen.append(np.array(dst.array))
        return seen

    for result, times in zip(inside(body), (1, 2, 1), strict=True):
        np.testing.assert_array_equal(result, times * x.T)


def test_transpose_mode_with_another_moving_operand_is_not_modelled() -> None:
    """What the engine does then is nowhere written."""
    with pytest.raises(nkitools.NotModelled, match="identity"):
        issue(nisa.nc_matmul, bank((4, 4)), tile(ONES), tile(2 * ONES), is_transpose=True)


def test_onezero_hints_change_nothing_but_speed() -> None:
    """The product is the same."""
    x, y = small_integers((8, 4), 1), np.eye(8, dtype=np.float32)
    plain = issue(nisa.nc_matmul, bank((4, 8)), tile(x), tile(y))
    hinted = issue(nisa.nc_matmul, bank((4, 8)), tile(x), tile(y), True, True)
    np.testing.assert_array_equal(plain.dst, hinted.dst)
    assert hinted.instruction.cycles < plain.instruction.cycles


def _continued(first: str, accumulate: Any) -> Any:
    """A kernel whose PSUM tile gets its first value from ``first`` and then a matmul."""

    def kernel(x: Any) -> Any:
        tile = nl.load(x)
        total = nl.ndarray((16, 16), nl.float32, buffer=nl.psum)
        if first == "memset":
            nisa.memset(total, 1.0)
        elif first == "matmul":
            nisa.nc_matmul(total, tile, tile, accumulate=False)
        else:
            nisa.memset(total, 1.0)
            nisa.nc_matmul(total, tile, tile, accumulate=False)
        nisa.nc_matmul(total, tile, tile, accumulate=accumulate)
        out = nl.ndarray((16, 16), nl.float32, buffer=nl.shared_hbm)
        nl.store(out, nl.copy(total))
        return out

    return kernel


@pytest.mark.parametrize(
    ("first", "accumulate", "chip", "rules"),
    [
        ("memset", True, "trn1", ["NK503"]),
        ("memset", True, "trn2", ["NK503"]),
        ("memset", True, "trn3", []),
        ("memset", None, "trn1", ["NK503"]),
        ("memset", None, "trn2", ["NK503"]),
        ("memset", None, "trn3", []),
        ("memset and matmul", None, "trn2", []),
        ("matmul", True, "trn2", []),
        ("memset and matmul", True, "trn2", []),
    ],
)
def test_adding_to_what_no_matmul_wrote(first: str, accumulate: Any, chip: str, rules: list[str]) -> None:
    """Undefined on NeuronCore-v2 and v3 (Accumulation mode, note); a matmul that overwrites makes it good again."""
    x = np.eye(16, dtype=np.float32)
    run = nkitools.simulate(_continued(first, accumulate), x, chip=chip, rules="report")
    assert [finding.rule for finding in run.findings] == rules
    np.testing.assert_array_equal(run.outputs, (1 + x) if first == "memset" else 2 * x)


@pytest.mark.parametrize("value", [0.0, 2.0])
def test_a_part_that_a_matmul_has_written_may_be_added_to(value: float) -> None:
    """A memset of a whole bank counts for the columns that no matmul has overwritten; zeros are an idiom everywhere."""

    def kernel(x: Any) -> Any:
        tile = nl.load(x)
        bank = nl.ndarray((16, 512), nl.float32, buffer=nl.psum)
        nisa.memset(bank, value)
        nisa.nc_matmul(bank[:, 0:16], tile, tile, accumulate=None if value == 0 else False)
        for accumulate in (None, True):
            nisa.nc_matmul(bank[:, 0:16], tile, tile, accumulate=accumulate)
        nisa.nc_matmul(bank[:, 16:32], tile, tile)
        out = nl.ndarray((16, 32), nl.float32, buffer=nl.shared_hbm)
        nl.store(out, nl.copy(bank[:, 0:32]))
        return out

    x = np.eye(16, dtype=np.float32)
    run = nkitools.simulate(kernel, x, rules="report")
    assert [each.rule for each in run.findings] == ([] if value == 0 else ["NK503"])
    np.testing.assert_array_equal(run.outputs, np.hstack([3 * x, value + x]))


@pytest.mark.parametrize("chip", ["trn1", "trn2"])
def test_adding_to_zeros_is_a_warning(chip: str) -> None:
    """Public kernels do so on both chips; it is said once for a tile, and other values on top of zeros are an error."""

    def kernel(x: Any, value: float, first: int) -> Any:
        tile = nl.load(x)
        total = nl.zeros((16, 32), nl.float32, buffer=nl.psum)
        nisa.memset(total[:, 0:first], value)
        for _ in range(2):
            nisa.nc_matmul(total[:, 0:16], tile, tile, accumulate=True)
        out = nl.ndarray((16, 32), nl.float32, buffer=nl.shared_hbm)
        nl.store(out, nl.copy(total))
        return out

    x = np.eye(16, dtype=np.float32)
    for value, first in ((0.0, 32), (0.0, 16), (0.0, 8)):
        run = nkitools.simulate(kernel, x, value, first, chip=chip)
        assert {(each.rule, each.severity) for each in run.findings} == {("NK503", "warning")}
        np.testing.assert_array_equal(run.outputs, np.hstack([2 * x, 0 * x]))
    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(kernel, x, 1.0, 8, chip=chip)
    assert caught.value.finding.rule == "NK503"


def test_a_neighbouring_region_does_not_matter() -> None:
    """Another bank of the same tile may be filled by other instructions between two matmuls."""

    def kernel(x: Any) -> Any:
        tile = nl.load(x)
        banks = nl.ndarray((16, 2, 512), nl.float32, buffer=nl.psum)
        left = banks[:, 0, 0:16]
        nisa.nc_matmul(left, tile, tile, accumulate=False)
        nisa.memset(banks[:, 1, :], 0.0)
        nisa.nc_matmul(left, tile, tile, accumulate=True)
        out = nl.ndarray((16, 16), nl.float32, buffer=nl.shared_hbm)
        nl.store(out, nl.copy(left))
        return out

    x = np.eye(16, dtype=np.float32)
    np.testing.assert_array_equal(nkitools.simulate(kernel, x).outputs, 2 * x)
