"""nisa.nc_matmul against float64 products: accumulation, banks, modes, refusals, generations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from tests.isa.issued import Tile, empty, inside, issue, placed, refusal, tile
from tests.isa.oracles import float64, held, sample

DOUBLE_ROW = nisa.matmul_perf_mode.double_row
WIDE = (nl.float32, nl.tfloat32)  # these go with each other only
INPUTS = (*WIDE, nl.bfloat16, nl.float16, nl.float8_e4m3, nl.float8_e5m2)


def integers(shape: tuple[int, ...], seed: int, high: int = 5) -> np.ndarray:
    """Small integers: their products and sums are exact in float32, in any order."""
    return np.random.default_rng(seed).integers(-high, high + 1, shape).astype(np.float32)


def bank(shape: tuple[int, ...], dtype: Any = nl.float32) -> Tile:
    """A destination in PSUM."""
    return empty(shape, dtype, "psum")


# --- values ----------------------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 128), st.integers(1, 128), st.integers(1, 512), st.integers(0, 2**32 - 2))
def test_the_product_is_stationary_transposed_times_moving(k: int, m: int, n: int, seed: int) -> None:
    """[K, M] and [K, N] give [M, N], exactly for small integers."""
    stationary, moving = integers((k, m), seed), integers((k, n), seed + 1)
    result = issue(nisa.nc_matmul, bank((m, n)), tile(stationary), tile(moving)).dst
    np.testing.assert_array_equal(result, float64(stationary).T @ float64(moving))


@pytest.mark.parametrize(
    ("stationary", "moving"),
    [(x, y) for x in INPUTS for y in INPUTS if (x in WIDE) == (y in WIDE)],
    ids=str,
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


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 3), st.integers(-3, 3), st.integers(-3, 3))
def test_the_product_is_linear_in_the_moving_operand(seed: int, a: int, b: int) -> None:
    """Exactly so for small integers."""
    w, x, y = integers((64, 16), seed), integers((64, 20), seed + 1), integers((64, 20), seed + 2)

    def product(moving: np.ndarray) -> np.ndarray:
        return issue(nisa.nc_matmul, bank((16, 20)), tile(w), tile(moving)).dst

    np.testing.assert_array_equal(product(a * x + b * y), a * product(x) + b * product(y))


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 64), st.integers(1, 64), st.integers(0, 2**32 - 2))
def test_swapping_the_operands_transposes_the_product(m: int, n: int, seed: int) -> None:
    """``(S.T @ M).T`` is ``M.T @ S``."""
    x, y = integers((32, m), seed), integers((32, n), seed + 1)
    forth = issue(nisa.nc_matmul, bank((m, n)), tile(x), tile(y)).dst
    back = issue(nisa.nc_matmul, bank((n, m)), tile(y), tile(x)).dst
    np.testing.assert_array_equal(forth.T, back)


def test_views_and_several_free_dimensions() -> None:
    """Permuted, stepped and broadcast operands, destinations of several free dimensions, a part of a larger tile."""
    x, y = integers((32, 4, 6), 1), integers((32, 10), 2)
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
    x, y = held(integers((128, 2, 16), 1), dtypes[0]), held(integers((128, 2, 24), 2), dtypes[1])
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
    x, y = integers((32, 32), 1), integers((32, 100), 2)
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
    x, eye = integers((4, 4), 1), np.eye(4, dtype=np.float32)

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
    x, y = integers((8, 4), 1), np.eye(8, dtype=np.float32)
    plain = issue(nisa.nc_matmul, bank((4, 8)), tile(x), tile(y))
    hinted = issue(nisa.nc_matmul, bank((4, 8)), tile(x), tile(y), True, True)
    np.testing.assert_array_equal(plain.dst, hinted.dst)
    assert hinted.instruction.cycles < plain.instruction.cycles


# --- refusals --------------------------------------------------------------------------------------------------------


def f32(*shape: int) -> Tile:
    """A float32 tile of ones in SBUF."""
    return tile(np.ones(shape, np.float32))


def f8(*shape: int, dtype: Any = nl.float8_e4m3) -> Tile:
    """A float8 tile of ones in SBUF."""
    return tile(np.ones(shape, dtype.dtype))


BF16 = tile(np.ones((32, 8), nl.bfloat16.dtype))
DOUBLE = {"perf_mode": DOUBLE_ROW}
REFUSED: dict[str, tuple[str, str, tuple[Any, ...], dict[str, Any]]] = {
    "contraction": ("NK103", "`stationary`", (bank((8, 8)), f32(256, 8), f32(256, 8)), {}),
    "contraction of a tile": (
        "NK103",
        "`stationary`",
        (bank((8, 8)), f32(64, 8), f32(64, 8)),
        {"tile_position": (32, 0), "tile_size": (32, 128)},
    ),
    "columns": ("NK104", "`stationary`", (bank((128, 8)), f32(32, 256), f32(32, 8)), {}),
    "columns that fit": ("NK104", "`stationary`", (bank((256, 8)), f32(32, 256), f32(32, 8)), {}),
    "columns of a tile": (
        "NK104",
        "`stationary`",
        (bank((65, 8)), f32(32, 65), f32(32, 8)),
        {"tile_position": (0, 64), "tile_size": (128, 64)},
    ),
    "moving": ("NK105", "`moving`", (bank((8, 513)), f32(32, 8), f32(32, 513)), {}),
    "moving that does not fit": ("NK105", "`moving`", (bank((8, 512)), f32(32, 8), f32(32, 1024)), {}),
    "bank": (
        "NK106",
        "`dst`",
        (Tile((8, 1024), None, nl.float32, "psum", lambda t: t[:, 256:768]), f32(32, 8), f32(32, 512)),
        {},
    ),
    "strided bank": (
        "NK106",
        "`dst`",
        (Tile((8, 1024), None, nl.float32, "psum", lambda t: t[:, ::2]), f32(32, 8), f32(32, 512)),
        {},
    ),
    "start": (
        "NK108",
        "`moving`",
        (bank((8, 8)), f32(32, 8), Tile((64, 8), f32(64, 8).values, nl.float32, "sbuf", lambda t: t[5:37])),
        {},
    ),
    "different contraction": ("NK102", "`moving`", (bank((8, 8)), f32(32, 8), f32(16, 8)), {}),
    "destination": ("NK109", "`dst`", (bank((8, 9)), f32(32, 8), f32(32, 8)), {}),
    "destination the other way": ("NK109", "`dst`", (bank((4, 8)), f32(32, 8), f32(32, 4)), {}),
    "no second row": ("NK109", "`moving`", (bank((8, 8)), f8(32, 2, 8), f8(32, 16)), DOUBLE),
    "destination in SBUF": ("NK201", "`dst`", (empty((8, 8)), f32(32, 8), f32(32, 8)), {}),
    "stationary in PSUM": (
        "NK201",
        "`stationary`",
        (bank((8, 8)), tile(np.ones((32, 8), np.float32), "psum"), f32(32, 8)),
        {},
    ),
    "moving in HBM": ("NK201", "`moving`", (bank((8, 8)), f32(32, 8), tile(np.ones((32, 8), np.float32), "hbm")), {}),
    "integers": ("NK301", "`stationary`", (bank((8, 8)), tile(np.ones((32, 8), np.int8)), BF16), {}),
    "double row of bfloat16": (
        "NK301",
        "`stationary`",
        (bank((4, 4)), *[tile(np.ones((32, 2, 4), nl.bfloat16.dtype))] * 2),
        DOUBLE,
    ),
    "mixed widths": ("NK302", "`moving`", (bank((8, 8)), f32(32, 8), BF16), {}),
    "bfloat16 result": ("NK303", "`dst`", (bank((8, 8), nl.bfloat16), BF16, BF16), {}),
    "mixed widths into bfloat16": ("NK302", "`moving`", (bank((8, 8), nl.bfloat16), f32(32, 8), BF16), {}),
    "size without position": (
        "NK609",
        "`tile_position`",
        (bank((8, 8)), f32(32, 8), f32(32, 8)),
        {"tile_size": (32, 128)},
    ),
    "position off its size": (
        "NK609",
        "`tile_position`",
        (bank((8, 8)), f32(32, 8), f32(32, 8)),
        {"tile_position": (32, 0), "tile_size": (64, 128)},
    ),
    "position outside": (
        "NK609",
        "`tile_position`",
        (bank((8, 8)), f32(32, 8), f32(32, 8)),
        {"tile_position": (0, 128), "tile_size": (64, 64)},
    ),
    "odd size": (
        "NK609",
        "`tile_size`",
        (bank((8, 8)), f32(32, 8), f32(32, 8)),
        {"tile_position": (0, 0), "tile_size": (48, 128)},
    ),
    "size of text": (
        "NK609",
        "`tile_size`",
        (bank((8, 8)), f32(32, 8), f32(32, 8)),
        {"tile_position": (0, 0), "tile_size": ("a", 1)},
    ),
    "double row in columns": (
        "NK609",
        "`perf_mode`",
        (bank((4, 4)), f8(32, 2, 4), f8(32, 2, 4)),
        {**DOUBLE, "tile_position": (0, 0), "tile_size": (128, 64)},
    ),
    "double row transposed": (
        "NK609",
        "`perf_mode`",
        (bank((4, 4)), f8(32, 2, 4), f8(32, 2, 4)),
        {**DOUBLE, "is_transpose": True},
    ),
    "mode of text": ("NK609", "`perf_mode`", (bank((8, 8)), f32(32, 8), f32(32, 8)), {"perf_mode": "double_row"}),
    "accumulate of a number": ("NK609", "`accumulate`", (bank((8, 8)), f32(32, 8), f32(32, 8)), {"accumulate": 1}),
    "no tensor": ("NK609", "`moving`", (bank((8, 8)), f32(32, 8), 1.0), {}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    """One finding, of the documented rule, that names the operand."""
    rule, named, args, kwargs = REFUSED[case]
    finding = refusal(nisa.nc_matmul, *args, **kwargs)
    assert finding.rule == rule
    assert named in finding.message


def test_256_rows_are_reported_once_and_computed() -> None:
    """Under rules="report": NK103, and not NK101 as well when the tile is used again."""
    x = integers((256, 8), 1)

    def body() -> np.ndarray:
        dst, data = placed(bank((8, 8))), placed(tile(x))
        nisa.nc_matmul(dst, data, data, accumulate=False)
        nisa.activation(data, nl.copy, data)
        return np.array(dst.array)

    results: list[np.ndarray] = []
    run = nkitools.simulate(lambda: results.append(body()), rules="report")
    np.testing.assert_array_equal(results[0], float64(x).T @ float64(x))
    assert [finding.rule for finding in run.findings] == ["NK103"]


# --- generations -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chip", "n", "dtype", "rule"),
    [
        ("trn1", 512, nl.float32, None),
        ("trn1", 513, nl.float32, "NK105"),
        ("trn2", 513, nl.float32, "NK105"),
        ("trn3", 513, nl.float32, None),
        ("trn3", 4096, nl.float32, None),
        ("trn3", 4097, nl.float32, "NK105"),
        ("trn3", 8192, nl.bfloat16, None),
        ("trn3", 8193, nl.bfloat16, "NK105"),
    ],
)
def test_the_moving_size_grows_with_the_generations(chip: str, n: int, dtype: Any, rule: str | None) -> None:
    """One bank of float32, on NeuronCore-v4 all of PSUM."""
    args = (bank((4, n), dtype), f32(8, 4), f32(8, n))
    if rule is None:
        assert (issue(nisa.nc_matmul, *args, chip=chip).dst.astype(np.float32) == 8).all()
    else:
        assert refusal(nisa.nc_matmul, *args, chip=chip).rule == rule


@pytest.mark.parametrize(
    ("args", "kwargs", "chips", "rule", "named"),
    [
        ((bank((4, 4)), f8(32, 2, 4), f8(32, 2, 4)), DOUBLE, ("trn2", "trn3"), "NK606", "`perf_mode`"),
        (
            (bank((4, 4)), f32(32, 4), f32(32, 4)),
            {"tile_position": (32, 0), "tile_size": (32, 128)},
            ("trn2", "trn3"),
            "NK606",
            "`tile_size`",
        ),
        (
            (bank((4, 4)), f8(32, 4, dtype=nl.float8_e4m3fn), BF16.seen(lambda t: t[:, 0:4])),
            {},
            ("trn3",),
            "NK606",
            "`stationary`",
        ),
        ((bank((8, 8), nl.bfloat16), BF16, BF16), {}, ("trn3",), "NK303", "`dst`"),
    ],
    ids=["double_row", "tile of 32 rows", "float8_e4m3fn", "bfloat16 PSUM"],
)
def test_what_came_later(args: Any, kwargs: Any, chips: tuple[str, ...], rule: str, named: str) -> None:
    """Refused on the generations before, computed from then on."""
    for chip in ("trn1", "trn2", "trn3"):
        if chip in chips:
            assert issue(nisa.nc_matmul, *args, **kwargs, chip=chip).rules == []
        else:
            finding = refusal(nisa.nc_matmul, *args, **kwargs, chip=chip)
            assert finding.rule == rule
            assert named in finding.message


def test_the_two_float8_e4m3_do_not_mix() -> None:
    """float8_e4m3 with float8_e4m3fn, on the generation that has both."""
    args = (bank((4, 4)), f8(32, 4), f8(32, 4, dtype=nl.float8_e4m3fn))
    finding = refusal(nisa.nc_matmul, *args, chip="trn3")
    assert finding.rule == "NK302"
    assert "`moving`" in finding.message
