"""nisa.nc_matmul_mx: every code and scale exactly, sums within float32's accuracy, accumulation, layouts."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from tests.isa.issued import Tile, bank, inside, issue, placed, tile
from tests.isa.scalar_microscaling import E2M1, E4M3, E5M2, FORMATS, Scalar

NAMES = {E5M2: "e5m2", E4M3: "e4m3fn", E2M1: "e2m1fn"}
EACH = pytest.mark.parametrize("form", FORMATS, ids=NAMES.values())
ONE = 127  # the scale 2**0


def packed(codes: np.ndarray, form: Scalar) -> np.ndarray:
    """Codes (P, 4F) as packed elements (P, F), by arithmetic on integers."""
    fours = codes.reshape(codes.shape[0], -1, 4).astype(np.uint64)
    words = sum(fours[..., place] << np.uint64(form.width * place) for place in range(4))
    return np.asarray(words).astype(f"<u{form.packed.itemsize}").view(form.packed.dtype)


def spread(scales: np.ndarray, rows: int) -> np.ndarray:
    """Scales (P // 8, F) in SBUF: four to a quadrant; 255 elsewhere, so that reading too much would show."""
    found = np.full((rows, scales.shape[1]), 255, np.uint8)
    for group, row in enumerate(scales):
        found[group // 4 * 32 + group % 4] = row
    return found


class Operand:
    """Codes (P, 4F) of a format and scales (P // 8, F), with the values that they stand for."""

    def __init__(self, form: Scalar, codes: np.ndarray, scales: np.ndarray) -> None:
        self.form, self.codes, self.scales = form, codes, scales
        table = np.array([float(form.value(code)) for code in range(2**form.width)])
        powers = np.ldexp(1.0, scales.astype(int) - 127)
        self.values = table[codes] * np.repeat(np.repeat(powers, 8, axis=0), 4, axis=1)

    @classmethod
    def random(cls, form: Scalar, partitions: int, free: int, seed: int, low: int = 120, high: int = 130) -> Operand:
        """Finite codes, and scales from ``low`` on."""
        random = np.random.default_rng(seed)
        magnitudes = random.integers(0, len(form.magnitudes), (partitions, 4 * free))
        codes = magnitudes | random.integers(0, 2, magnitudes.shape) << (form.width - 1)
        return cls(form, codes, random.integers(low, high, (partitions // 8, free)).astype(np.uint8))

    @property
    def contracted(self) -> np.ndarray:
        """The values with the contraction along the rows: (4P, F)."""
        partitions = self.values.shape[0]
        return self.values.reshape(partitions, -1, 4).transpose(0, 2, 1).reshape(4 * partitions, -1)

    def columns(self, chosen: list[int]) -> Operand:
        """Some of the packed columns."""
        codes = self.codes.reshape(len(self.codes), -1, 4)[:, chosen]
        return Operand(self.form, codes.reshape(len(codes), -1), self.scales[:, chosen])

    def tiles(self, rows: int | None = None, dtype: Any = nl.float8_e8m0fnu) -> tuple[Tile, Tile]:
        """Packed elements and scales as operands."""
        scales = spread(self.scales, rows or self.codes.shape[0])
        return tile(packed(self.codes, self.form)), tile(scales.view(dtype.dtype), dtype=dtype)


def product(left: Operand, right: Operand, dtype: Any = nl.float32, **kwargs: Any) -> np.ndarray:
    """What the instruction gives."""
    (stationary, stationary_scale), (moving, moving_scale) = left.tiles(), right.tiles()
    dst = bank((left.scales.shape[1], right.scales.shape[1]), dtype)
    args = (dst, stationary, moving, stationary_scale, moving_scale)
    return issue(nisa.nc_matmul_mx, *args, chip="trn3", **kwargs).dst


def assert_close(got: np.ndarray, left: Operand, right: Operand) -> None:
    """Within what any order of float32 sums may lose."""
    a, b = left.contracted, right.contracted
    bound = len(a) * 2.0**-24 * (np.abs(a).T @ np.abs(b))
    assert (np.abs(got - a.T @ b) <= bound).all()


# --- numbers ---------------------------------------------------------------------------------------------------------


def one_hot(columns: int = 2) -> Operand:
    """1.0 in the first of the four elements of partition 0, for each column."""
    codes = np.zeros((32, 4 * columns), int)
    codes[0, ::4] = E4M3.nearest(Fraction(1), negative=False)
    return Operand(E4M3, codes, np.full((4, columns), ONE, np.uint8))


@EACH
@pytest.mark.parametrize("scale", [0, 1, 60, 127, 200, 240, 254])
def test_every_code_times_a_scale(form: Scalar, scale: int) -> None:
    """A single product: the number itself in float32, infinite beyond it, NaN where the code is one."""
    everything = np.zeros((32, 4 * 2**form.width), int)
    everything[0, ::4] = np.arange(2**form.width)
    right = Operand(form, everything, np.full((4, 2**form.width), scale, np.uint8))
    got = product(one_hot(), right)
    numbers = [form.value(code) for code in range(2**form.width)]
    exact = [each * Fraction(2) ** (scale - 127) if isinstance(each, Fraction) else each for each in numbers]
    with np.errstate(over="ignore"):
        wanted = np.array([float(each) for each in exact]).astype(np.float32)
    np.testing.assert_array_equal(got, [wanted, wanted])


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("partition", [0, 7, 8, 31, 32, 95, 127])
def test_each_element_meets_its_counterpart(partition: int, place: int) -> None:
    """Of the same partition and place in four, with the scales of its own group of 8 partitions."""
    left, right = (Operand.random(E2M1, 128, free, free, 100, 150) for free in (6, 10))
    chosen = np.zeros_like(left.codes)
    chosen[partition, place::4] = left.codes[partition, place::4]
    only = Operand(E2M1, chosen, left.scales)
    row = 4 * partition + place
    np.testing.assert_array_equal(product(only, right), np.outer(left.contracted[row], right.contracted[row]))


@pytest.mark.parametrize("forms", [(a, b) for a in FORMATS for b in FORMATS], ids=lambda f: "-".join(map(NAMES.get, f)))
@pytest.mark.parametrize("sizes", [(32, 2, 1), (64, 30, 77), (96, 6, 300), (128, 128, 512)], ids=str)
def test_products_of_every_pair_of_formats(forms: tuple[Scalar, Scalar], sizes: tuple[int, int, int]) -> None:
    """Against float64, for tiles of several sizes and scales at random."""
    partitions, m, n = sizes
    left, right = Operand.random(forms[0], partitions, m, 1), Operand.random(forms[1], partitions, n, 2)
    assert_close(product(left, right), left, right)


def test_exact_where_sums_are() -> None:
    """MXFP4 under equal scales: small multiples of 1/4, whose sums float32 holds."""
    left, right = (Operand.random(E2M1, 128, free, free, ONE, ONE + 1) for free in (128, 512))
    np.testing.assert_array_equal(product(left, right), left.contracted.T @ right.contracted)


def test_the_reference_on_the_host_agrees() -> None:
    """nkitools.mx.matmul, written apart from the instruction."""
    left, right = Operand.random(E5M2, 128, 64, 5), Operand.random(E4M3, 128, 96, 6)
    sides = [each for side in (left, right) for each in (packed(side.codes, side.form), side.scales)]
    exact = nkitools.mx.matmul(sides[0], sides[2], sides[1], sides[3])
    np.testing.assert_allclose(exact, left.contracted.T @ right.contracted, rtol=1e-12, atol=1e-12)


@EACH
def test_scales_beyond_float32_may_cancel(form: Scalar) -> None:
    """One operand is scaled by 2**127 and the other by 2**-127: the products are ordinary numbers."""
    left = Operand.random(form, 64, 8, 1, 254, 255)
    right = Operand.random(form, 64, 8, 2, 0, 1)
    assert_close(product(left, right), left, right)
    assert_close(product(right, left), right, left)


def test_a_scale_of_255_is_nan() -> None:
    """For all that its group takes part in, and nothing else; whatever the elements are (OCP, Scale)."""
    left, right = Operand.random(E4M3, 64, 8, 1), Operand.random(E4M3, 64, 12, 2)
    right.scales[3, 5] = 255
    got = product(left, right)
    assert np.isnan(got[:, 5]).all()
    assert not np.isnan(np.delete(got, 5, axis=1)).any()
    left.codes[24:32] = 0
    assert np.isnan(product(left, right)[:, 5]).all()


# --- accumulation ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [nl.float32, nl.bfloat16], ids=str)
@pytest.mark.parametrize(
    ("flags", "times"),
    [([None], 1), ([None, None], 2), ([False, True, True], 3), ([True, False, None], 2), ([False, False], 1)],
)
def test_accumulate(flags: list[Any], times: int, dtype: Any) -> None:
    """False overwrites, True adds, None overwrites what was never written and adds elsewhere."""
    left, right = (Operand.random(E2M1, 32, free, free, ONE, ONE + 1) for free in (4, 6))

    def body() -> np.ndarray:
        dst = placed(bank((4, 6), dtype))
        if flags[0] is True:
            nisa.memset(dst, 0)
        operands = [placed(each) for each in (*left.tiles(), *right.tiles())]
        for flag in flags:
            nisa.nc_matmul_mx(dst, operands[0], operands[2], operands[1], operands[3], accumulate=flag)
        return np.array(dst.array).astype(np.float64)

    one = left.contracted.T @ right.contracted
    exact = np.zeros_like(one)
    for _ in range(times):
        exact = (exact + one).astype(dtype.dtype).astype(np.float64)  # each write rounds
    np.testing.assert_array_equal(inside(body, chip="trn3"), exact)


def test_adding_to_nothing_is_reported() -> None:
    """NK503: accumulate=True on PSUM without a value."""
    left, right = Operand.random(E2M1, 32, 2, 1), Operand.random(E2M1, 32, 2, 2)
    with pytest.raises(nkitools.KernelError, match="never written") as raised:
        product(left, right, accumulate=True)
    assert raised.value.finding.rule == "NK503"


def test_it_adds_to_a_plain_matmul() -> None:
    """Both kinds of matmul share the accumulators in PSUM."""
    left, right = (Operand.random(E2M1, 32, free, free, ONE, ONE + 1) for free in (4, 6))
    plain = np.ones((8, 4), ml_dtypes.bfloat16), np.ones((8, 6), ml_dtypes.bfloat16)

    def body() -> np.ndarray:
        dst = placed(bank((4, 6)))
        nisa.nc_matmul(dst, placed(tile(plain[0])), placed(tile(plain[1])))
        operands = [placed(each) for each in (*left.tiles(), *right.tiles())]
        nisa.nc_matmul_mx(dst, operands[0], operands[2], operands[1], operands[3])
        return np.array(dst.array)

    np.testing.assert_array_equal(inside(body, chip="trn3"), 8 + left.contracted.T @ right.contracted)


@pytest.mark.parametrize(("n", "dtype"), [(4096, nl.float32), (8192, nl.bfloat16)], ids=str)
def test_the_result_may_fill_psum(n: int, dtype: Any) -> None:
    """Eight banks (Tile size)."""
    left, right = Operand.random(E2M1, 32, 2, 1, ONE, ONE + 1), Operand.random(E2M1, 32, n, 2, ONE, ONE + 1)
    exact = (left.contracted.T @ right.contracted).astype(dtype.dtype)
    np.testing.assert_array_equal(product(left, right, dtype).astype(np.float64), exact.astype(np.float64))


# --- layout ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [nl.float8_e8m0fnu, nl.uint8], ids=str)
@pytest.mark.parametrize("rows", [4, 32, 128])
def test_scales_of_one_quadrant_may_lie_in_a_tile_of_any_height(rows: int, dtype: Any) -> None:
    """[P // 8, F] for 32 partitions, or more of which the rest is not looked at; both dtypes are the same bits."""
    left, right = Operand.random(E4M3, 32, 8, 1), Operand.random(E5M2, 32, 6, 2)
    (stationary, stationary_scale), (moving, moving_scale) = left.tiles(rows, dtype), right.tiles(rows)
    args = (bank((8, 6)), stationary, moving, stationary_scale, moving_scale)
    assert_close(issue(nisa.nc_matmul_mx, *args, chip="trn3").dst, left, right)


def test_scales_that_share_a_tile_with_others() -> None:
    """Written by quantize_mx at offsets 4 and 12 of a tile of which the rest was never written."""
    random = np.random.default_rng(3)
    sources = [random.integers(-8, 9, (64, 4 * free)).astype(ml_dtypes.bfloat16) for free in (6, 10)]

    def body() -> np.ndarray:
        shared = placed(Tile((64, 10), None, nl.float8_e8m0fnu))
        views = [shared[4:, :6], shared[12:, :]]
        tiles = [placed(Tile((64, free), None, nl.float8_e4m3fn_x4)) for free in (6, 10)]
        for dst, source, scales in zip(tiles, sources, views, strict=True):
            nisa.quantize_mx(dst, placed(tile(source)), scales)
        dst = placed(bank((6, 10)))
        nisa.nc_matmul_mx(dst, *tiles, *views)
        return np.array(dst.array)

    # Integers up to 8 are exact in E4M3 under any scale that their group may have.
    sides = [each.astype(np.float64).reshape(64, -1, 4).transpose(0, 2, 1).reshape(256, -1) for each in sources]
    np.testing.assert_array_equal(inside(body, chip="trn3"), sides[0].T @ sides[1])


@pytest.mark.parametrize(("start", "size"), [(0, 32), (32, 32), (96, 32), (0, 64), (64, 64)])
def test_rows_of_the_array(start: int, size: int) -> None:
    """A tile of 32 or 64 rows: operands and scales from their own quadrants, the same product."""
    left, right = Operand.random(E4M3, 128, 8, 1), Operand.random(E2M1, 128, 6, 2)
    rows = slice(start, start + size)

    def body() -> np.ndarray:
        operands = [placed(each)[rows] for each in (*left.tiles(), *right.tiles())]
        dst = placed(bank((8, 6)))
        nisa.nc_matmul_mx(
            dst, operands[0], operands[2], operands[1], operands[3], tile_position=(start, 0), tile_size=(size, 128)
        )
        return np.array(dst.array)

    parts = [Operand(e.form, e.codes[rows], e.scales[start // 8 : (start + size) // 8]) for e in (left, right)]
    assert_close(inside(body, chip="trn3"), *parts)


def test_views_of_several_dimensions() -> None:
    """Free dimensions count together, those of scales and result included."""
    left, right = Operand.random(E4M3, 32, 6, 1), Operand.random(E5M2, 32, 20, 2)

    def body() -> np.ndarray:
        stationary, stationary_scale, moving, moving_scale = (placed(each) for each in (*left.tiles(), *right.tiles()))
        dst = placed(bank((6, 4, 5)))
        wide = moving.reshape((32, 4, 5)), moving_scale.reshape((32, 2, 10))
        nisa.nc_matmul_mx(dst, stationary.reshape((32, 2, 3)), wide[0], stationary_scale, wide[1])
        return np.array(dst.array).reshape(6, 20)

    assert_close(inside(body, chip="trn3"), left, right)


def index(offsets: list[int], partitions: int = 32) -> Any:
    """An index tensor of up to 32 offsets, inside a running kernel."""
    values = np.zeros((partitions, 1), np.int32)
    values[: len(offsets), 0] = offsets
    return placed(tile(values))


def test_columns_that_an_index_chooses() -> None:
    """Packed elements and scales with the same index; the result scattered by another one."""
    left, right = Operand.random(E4M3, 32, 10, 1), Operand.random(E5M2, 32, 20, 2)
    rows, columns, targets = [7, 0, 3, 3, 9, 1, 2, 8], [19, 2, 2, 5, 11], [8, 1, 0, 4, 6]

    def body() -> np.ndarray:
        stationary, stationary_scale, moving, moving_scale = (placed(each) for each in (*left.tiles(), *right.tiles()))
        first, second = index(rows), index(columns)
        dst = placed(tile(np.zeros((8, 9), np.float32), "psum"))
        nisa.nc_matmul_mx(
            dst.indirect(index(targets, 8), 5),
            stationary.indirect(first, 8),
            moving.indirect(second, 5),
            stationary_scale.indirect(first, 8),
            moving_scale.indirect(second, 5),
        )
        return np.array(dst.array)

    got = inside(body, chip="trn3")
    assert_close(got[:, targets], left.columns(rows), right.columns(columns))
    assert not got[:, [2, 3, 5, 7]].any()


@pytest.mark.parametrize("wrong", ["no index", "no index for the scales", "another index for the scales"])
def test_elements_and_scales_take_one_index(wrong: str) -> None:
    """NK609: they are one logical tensor (Tensor indirection)."""
    left, right = Operand.random(E4M3, 32, 4, 1), Operand.random(E5M2, 32, 6, 2)

    def body() -> None:
        stationary, stationary_scale, moving, moving_scale = (placed(each) for each in (*left.tiles(), *right.tiles()))
        mine, other = index([0, 1, 2, 3, 4, 5]), index([0, 1, 2, 3, 4, 5])
        elements = moving if wrong == "no index" else moving.indirect(mine, 6)
        scales = {
            "no index": lambda: moving_scale.indirect(mine, 6),
            "no index for the scales": lambda: moving_scale,
            "another index for the scales": lambda: moving_scale.indirect(other, 6),
        }[wrong]()
        nisa.nc_matmul_mx(placed(bank((4, 6))), stationary, elements, stationary_scale, scales)

    with pytest.raises(nkitools.KernelError, match="`moving` and `moving_scale`") as raised:
        inside(body, chip="trn3")
    assert raised.value.finding.rule == "NK609"


@pytest.mark.parametrize(("m", "n", "cycles"), [(2, 1, 2), (128, 32, 64), (128, 512, 512)])
def test_it_costs_what_a_bfloat16_matmul_of_its_size_costs(m: int, n: int, cycles: int) -> None:
    """Four times the work in the cycles of one pass (trainium3_arch, Quad-MXFP8/MXFP4 Matmul Performance)."""
    left, right = Operand.random(E2M1, 32, m, 1), Operand.random(E2M1, 32, n, 2)
    (stationary, stationary_scale), (moving, moving_scale) = left.tiles(), right.tiles()
    args = (bank((m, n)), stationary, moving, stationary_scale, moving_scale)
    issued = issue(nisa.nc_matmul_mx, *args, chip="trn3")
    assert (issued.instruction.engine, issued.instruction.cycles) == ("tensor", cycles)
