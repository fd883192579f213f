"""nisa.quantize_mx: scales and elements bit by bit, and where the scales go."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from tests.isa import scalar_microscaling as scalar
from tests.isa.issued import Issued, empty, inside, issue, placed, tile
from tests.isa.scalar_microscaling import E4M3, E5M2, Scalar

FLOAT8 = pytest.mark.parametrize("form", [E5M2, E4M3], ids=["e5m2", "e4m3fn"])
SOURCES = pytest.mark.parametrize("source", [nl.bfloat16, nl.float16], ids=str)
E8M0 = nl.float8_e8m0fnu


def quantized(values: Any, form: Scalar, scale_dtype: Any = E8M0) -> tuple[np.ndarray, np.ndarray]:
    """The codes of elements (P, 4F) and of scales (P // 8, F) that the instruction gives."""
    values = np.asarray(values)
    shape = values.shape[0], values.shape[1] // 4
    issued = issue(nisa.quantize_mx, empty(shape, form.packed), tile(values), empty(shape, scale_dtype), chip="trn3")
    return codes_of(issued), scales_of(issued.views["dst_scale"])


def codes_of(issued: Issued) -> np.ndarray:
    """The bytes of the packed elements: the first of four is the lowest."""
    packed = np.ascontiguousarray(issued.dst).view("<u4")
    return np.stack([packed >> shift & 255 for shift in (0, 8, 16, 24)], axis=-1).reshape(packed.shape[0], -1)


def scales_of(tensor: np.ndarray) -> np.ndarray:
    """The scales of all groups, out of the first four rows of each quadrant."""
    rows = [row for row in range(len(tensor)) if row % 32 < 4]
    return tensor.view(np.uint8)[rows]


def expected(values: np.ndarray, form: Scalar) -> tuple[np.ndarray, np.ndarray]:
    """The same by the scalar reference, group by group."""
    partitions, free = values.shape
    codes, scales = np.zeros((partitions, free), np.uint8), np.zeros((partitions // 8, free // 4), np.uint8)
    for row in range(0, partitions, 8):
        for column in range(0, free, 4):
            group = values[row : row + 8, column : column + 4].astype(np.float64)
            found, scale = scalar.quantized(group.ravel().tolist(), form, headroom=1)
            codes[row : row + 8, column : column + 4] = np.reshape(found, (8, 4))
            scales[row // 8, column // 4] = scale
    return codes, scales


def finite_bits(shape: tuple[int, ...], dtype: Any, seed: int, same_exponents: int = 0) -> np.ndarray:
    """Finite numbers of random bits; ``same_exponents`` keeps each group within so many powers of two."""
    random = np.random.default_rng(seed)
    mantissa = {nl.bfloat16: 7, nl.float16: 10}[dtype]
    exponents = 2 ** (15 - mantissa) - 1  # the last one is that of infinities and NaN
    field = random.integers(0, exponents, shape)
    if same_exponents:
        top = random.integers(same_exponents, exponents, (shape[0] // 8, shape[1] // 4))
        field = np.kron(top, np.ones((8, 4), np.int64)) - random.integers(0, same_exponents, shape)
    sign, digits = random.integers(0, 2, shape), random.integers(0, 2**mantissa, shape)
    return (sign << 15 | field << mantissa | digits).astype(np.uint16).view(dtype.dtype)


# --- numbers ---------------------------------------------------------------------------------------------------------


@FLOAT8
@SOURCES
@pytest.mark.parametrize("same_exponents", [0, 24])
def test_elements_and_scales_bit_by_bit(form: Scalar, source: Any, same_exponents: int) -> None:
    """Random finite bits, subnormals among them: over the whole range, and close enough to meet every rounding."""
    values = finite_bits((128, 40), source, form.width + same_exponents, same_exponents)
    codes, scales = quantized(values, form)
    wanted_codes, wanted_scales = expected(values, form)
    np.testing.assert_array_equal(scales, wanted_scales)
    np.testing.assert_array_equal(codes, wanted_codes)


@FLOAT8
@SOURCES
def test_the_reference_on_the_host_agrees(form: Scalar, source: Any) -> None:
    """nkitools.mx.quantize, written apart from the instruction, on tiles of full size."""
    values = finite_bits((128, 2048), source, 7, 12)
    codes, scales = quantized(values, form)
    packed, host_scales = nkitools.mx.quantize(values, form.packed, "quantize_mx")
    np.testing.assert_array_equal(codes.astype(np.uint8), nkitools.mx.unpack(packed).view(np.uint8))
    np.testing.assert_array_equal(scales, host_scales.view(np.uint8))


def test_by_hand() -> None:
    """floor(log2(3.5)) = 1, so that the scale is 2**(1 - 7) and 2**(1 - 14); 3.5 becomes 224 and 28672."""
    values = np.zeros((32, 4), ml_dtypes.bfloat16)
    values[0] = [3.5, -1, 0.25, -0.0]
    for form, scale, codes in ((E4M3, 121, [0x76, 0xE8, 0x58, 0x80]), (E5M2, 114, [0x77, 0xF0, 0x68, 0x80])):
        found, scales = quantized(values, form)
        assert found[0].tolist() == codes
        assert scales[:, 0].tolist() == [scale, 0, 0, 0]


def test_the_largest_of_a_group_is_rounded_up_since_nki_0_5() -> None:
    """1.984375 has no room above it in OCP's conversion, which gives 1.75; twice the scale lets it become 2."""
    values = np.full((32, 4), 1.984375, ml_dtypes.bfloat16)
    codes, scales = quantized(values, E4M3)
    assert set(codes.ravel()) == {E4M3.nearest(scalar.Fraction(256), negative=False)}
    assert set(scales.ravel()) == {127 - 7}
    older, _ = nkitools.mx.quantize(values, E4M3.packed, "ocp")
    assert nkitools.mx.unpack(older).astype(np.float64)[0, 0] / 2**8 == 1.75


@FLOAT8
def test_groups_of_zeros(form: Scalar) -> None:
    """The least scale (docstring), and zeros that keep their sign."""
    values = np.zeros((32, 8), ml_dtypes.bfloat16)
    values[:, 4:] = -0.0
    codes, scales = quantized(values, form)
    assert not scales.any()
    assert set(codes[:, :4].ravel()) == {0}
    assert set(codes[:, 4:].ravel()) == {128}


@FLOAT8
def test_tiny_groups_get_the_least_scale(form: Scalar) -> None:
    """2**-127 is the least that E8M0 has, however small the numbers: subnormals of bfloat16 survive what fits."""
    values = np.zeros((32, 8), ml_dtypes.bfloat16)
    values[0, 0], values[0, 4] = 2.0**-126, 2.0**-133
    codes, scales = quantized(values, form)
    assert not scales.any()
    assert [form.value(int(codes[0, column])) for column in (0, 4)] == [2, 2.0**-6]


@FLOAT8
@SOURCES
def test_infinities_and_nan(form: Scalar, source: Any) -> None:
    """They count as 2**128: an infinity saturates, NaN stays NaN, the rest of the group is scaled like them."""
    values = np.ones((32, 16), source.dtype)
    values[0, 0], values[0, 4], values[0, 8] = np.inf, -np.inf, np.nan
    codes, scales = quantized(values, form)
    assert scales[0].tolist() == [255 - (form.largest_exponent - 1)] * 3 + [127 - (form.largest_exponent - 1)]
    numbers = codes.astype(np.uint8).view(form.element).astype(np.float64)
    assert numbers[0, [0, 4]].tolist() == [float(form.magnitudes[-1]), -float(form.magnitudes[-1])]
    assert np.isnan(numbers[0, 8])
    assert (scales[1:] == scales[0, 3]).all()


@given(st.integers(-100, 100), st.integers(0, 2**32 - 1), st.sampled_from([E5M2, E4M3]))
def test_a_power_of_two_moves_the_scale_alone(power: int, seed: int, form: Scalar) -> None:
    """Elements of x and of 2**n x are the same, as long as nothing leaves the range."""
    values = np.random.default_rng(seed).uniform(1, 100, (32, 8)).astype(ml_dtypes.bfloat16)
    moved = (values.astype(np.float64) * 2.0**power).astype(ml_dtypes.bfloat16)
    codes, scales = quantized(values, form)
    moved_codes, moved_scales = quantized(moved, form)
    np.testing.assert_array_equal(codes, moved_codes)
    np.testing.assert_array_equal(moved_scales.astype(int), scales.astype(int) + power)


# --- layout ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [E8M0, nl.uint8], ids=str)
@pytest.mark.parametrize(("partitions", "rows"), [(32, 4), (32, 32), (64, 36), (64, 64), (96, 96), (128, 128)])
def test_each_quadrant_has_the_scales_of_its_own_groups(partitions: int, rows: int, dtype: Any) -> None:
    """In its first four partitions; what lies between is neither written nor looked at."""
    values = finite_bits((partitions, 24), nl.bfloat16, partitions, 8)

    def body() -> tuple[np.ndarray, np.ndarray]:
        scale = placed(empty((rows, 6), dtype))
        nisa.quantize_mx(placed(empty((partitions, 6), nl.float8_e5m2_x4)), placed(tile(values)), scale)
        missing = scale.unwritten()
        return np.array(scale.array), np.zeros((rows, 6), np.bool_) if missing is None else missing

    scales, missing = inside(body, chip="trn3")
    np.testing.assert_array_equal(scales_of(scales), expected(values, E5M2)[1])
    np.testing.assert_array_equal(missing, np.repeat(np.arange(rows) % 32 >= 4, 6).reshape(rows, 6))


def test_up_to_four_scale_tensors_share_a_tile() -> None:
    """From partition 0, 4, 8 and 12 of each quadrant (Packing Scale Values): each keeps what is its own."""
    sources = [finite_bits((64, 16), nl.float16, seed, 8) for seed in range(4)]

    def body() -> np.ndarray:
        packed = placed(tile(np.full((64, 8), 99, np.uint8)))
        for index, source in enumerate(sources):
            view = packed[4 * index :, 2:6]
            nisa.quantize_mx(placed(empty((64, 4), nl.float8_e4m3fn_x4)), placed(tile(source)), view)
        return np.array(packed.array)

    packed = inside(body, chip="trn3")
    for index, source in enumerate(sources):
        rows = [4 * index + row for quadrant in (0, 32) for row in range(quadrant, quadrant + 4)]
        np.testing.assert_array_equal(packed[rows, 2:6], expected(source, E4M3)[1])
    assert (packed[[*range(16, 32), *range(48, 64)]] == 99).all()
    assert (packed[:, [0, 1, 6, 7]] == 99).all()


def test_views_of_several_dimensions_and_quadrants() -> None:
    """Groups are of four neighbours in the order of the view, whatever its dimensions and steps are."""
    values = finite_bits((64, 96), nl.bfloat16, 3, 8)

    def body() -> tuple[np.ndarray, np.ndarray]:
        source = placed(tile(values.reshape(64, 3, 4, 8))).permute((0, 1, 3, 2))
        dst, scale = placed(empty((64, 3, 16), nl.float8_e4m3fn_x4)), placed(empty((64, 24), nl.uint8))
        shown = dst[32:64, :, 4:12]
        nisa.quantize_mx(shown, source[32:64], scale[32:64].reshape((32, 3, 8)))
        return np.array(shown.array), np.array(scale.array[32:36])

    packed, scales = inside(body, chip="trn3")
    turned = np.ascontiguousarray(values.reshape(64, 3, 4, 8).transpose(0, 1, 3, 2)[32:]).reshape(32, 96)
    codes, wanted = expected(turned, E4M3)
    np.testing.assert_array_equal(nkitools.mx.unpack(packed).view(np.uint8).reshape(32, 96), codes)
    np.testing.assert_array_equal(scales, wanted)


@pytest.mark.parametrize("free", [64, 2048])
def test_it_takes_four_elements_a_cycle(free: int) -> None:
    """On the Vector Engine (trainium3_arch, MX data-type Quantization), and not less than any instruction takes."""
    shape = (32, free // 4)
    ones = tile(np.ones((32, free), ml_dtypes.bfloat16))
    issued = issue(nisa.quantize_mx, empty(shape, nl.float8_e5m2_x4), ones, empty(shape, E8M0), chip="trn3")
    assert (issued.instruction.engine, issued.instruction.cycles) == ("vector", max(64, free / 4))
