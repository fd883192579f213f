"""nkitools.mx: packing, the standard's conversion digit by digit, layouts, and what kernels make of the arrays."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import nkitools
from nkitools import mx
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from tests.isa import scalar_microscaling as scalar
from tests.isa.scalar_microscaling import E4M3, E5M2, FORMATS, Scalar

EACH = pytest.mark.parametrize("form", FORMATS, ids=["e5m2", "e4m3fn", "e2m1fn"])


def elements_of(form: Scalar, codes: Any) -> np.ndarray:
    """Codes as elements of ml_dtypes."""
    return np.asarray(codes, np.uint8).view(form.element)


# --- packing ---------------------------------------------------------------------------------------------------------


@EACH
def test_the_first_of_four_has_the_lowest_bits(form: Scalar) -> None:
    """As little-endian bytes have it; float4 goes two to a byte."""
    packed = mx.pack(elements_of(form, [[1, 2, 3, 4], [5, 6, 7, 0]]))
    assert packed.dtype == form.packed.dtype
    word = packed.view(f"<u{form.packed.itemsize}")[0, 0]
    assert hex(word) == ("0x4321" if form.width == 4 else "0x4030201")


@EACH
@given(data=st.data())
def test_unpacking_undoes_packing(form: Scalar, data: st.DataObject) -> None:
    """For all codes and any shape."""
    shape = (*data.draw(arrays.array_shapes(max_dims=2, max_side=3)), 8)
    codes = data.draw(arrays.arrays(np.uint8, shape, elements=st.integers(0, 2**form.width - 1)))
    packed = mx.pack(elements_of(form, codes))
    assert packed.shape == (*shape[:-1], 2)
    np.testing.assert_array_equal(mx.unpack(packed).view(np.uint8), codes)


# --- numbers ---------------------------------------------------------------------------------------------------------

RULES = [("ocp", form) for form in FORMATS] + [("quantize_mx", form) for form in (E5M2, E4M3)]
FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
CLOSE = st.builds(math.ldexp, st.floats(-2, 2, width=32), st.integers(-12, 0))
SMALL = st.builds(math.ldexp, st.floats(-2, 2, width=32), st.integers(-149, -110))


@pytest.mark.parametrize(("rule", "form"), RULES, ids=lambda each: each if isinstance(each, str) else str(each.packed))
@given(group=st.one_of(*(st.lists(kind, min_size=32, max_size=32) for kind in (FLOATS, CLOSE, SMALL))))
def test_the_conversion_digit_by_digit(rule: Any, form: Scalar, group: list[float]) -> None:
    """Against fractions: the scale of the largest, elements to the nearest even, saturated."""
    packed, scales = mx.quantize(np.reshape(group, (8, 4)), form.packed, rule)
    codes, scale = scalar.quantized(group, form, headroom=int(rule == "quantize_mx"))
    assert scales.view(np.uint8).tolist() == [[scale]]
    assert mx.unpack(packed).view(np.uint8).ravel().tolist() == codes


@EACH
@given(seed=st.integers(0, 2**32 - 1))
def test_what_was_quantised_once_stays(form: Scalar, seed: int) -> None:
    """The values of packed elements are themselves representable: the second conversion loses nothing."""
    values = np.random.default_rng(seed).standard_normal((16, 8))
    first = mx.dequantize(*mx.quantize(values, form.packed))
    np.testing.assert_array_equal(mx.dequantize(*mx.quantize(first, form.packed)), first)


@EACH
def test_dequantising_every_code_and_scale(form: Scalar) -> None:
    """Exactly, in float64; the scale 255 is NaN, and so are the codes that say so."""
    codes = np.tile(np.arange(2**form.width).reshape(-1, 4), (2, 1))[: max(8, 2**form.width // 4)]
    numbers = [form.value(int(code)) for code in codes.ravel()]
    for scale in (0, 1, 127, 254, 255):
        scales = np.full((len(codes) // 8, 1), scale, np.uint8)
        got = mx.dequantize(mx.pack(elements_of(form, codes)), scales.view(ml_dtypes.float8_e8m0fnu))
        power = Fraction(2) ** (scale - 127)
        wanted = [float(each * power) if isinstance(each, Fraction) else each for each in numbers]
        expected = np.full(len(wanted), np.nan) if scale == 255 else np.array(wanted)
        np.testing.assert_array_equal(got.ravel(), expected)


def test_matmul_is_that_of_the_values() -> None:
    """Over partitions and the four elements of each packed one."""
    random = np.random.default_rng(1)
    left, right = random.standard_normal((32, 24)), random.standard_normal((32, 40))
    operands = [mx.quantize(left, nl.float4_e2m1fn_x4), mx.quantize(right, nl.float8_e5m2_x4)]
    (a, a_scale), (b, b_scale) = operands
    values = [mx.dequantize(*each).reshape(32, -1, 4) for each in operands]
    np.testing.assert_allclose(mx.matmul(a, b, a_scale, b_scale), np.einsum("pmi,pni->mn", *values), rtol=1e-12)


# --- layout ----------------------------------------------------------------------------------------------------------


def test_rows_a_tile_apart_become_neighbours() -> None:
    """Row i * 128 + p of each 512 is element i of partition p; a last, shorter tile has a quarter of its rows."""
    matrix = np.arange(768 * 3).reshape(768, 3)
    tiles = mx.interleave(matrix).reshape(192, 3, 4)
    for partition, column, place in ((0, 0, 0), (5, 2, 3), (127, 1, 2)):
        assert tiles[partition, column, place] == matrix[place * 128 + partition, column]
    assert tiles[128 + 63, 1, 2] == matrix[512 + 2 * 64 + 63, 1]
    np.testing.assert_array_equal(
        mx.interleave(matrix[:8], 2)[:, :4], [matrix[[0, 2, 4, 6], 0], matrix[[1, 3, 5, 7], 0]]
    )


@pytest.mark.parametrize("offset", [0, 4, 8, 12])
def test_scales_lie_in_four_rows_of_each_quadrant(offset: int) -> None:
    """And come back from there."""
    scales = np.arange(1, 41, dtype=np.uint8).reshape(8, 5)
    spread = mx.spread_scales(scales, offset)
    assert spread.shape == (64, 5)
    np.testing.assert_array_equal(spread[offset : offset + 4], scales[:4])
    np.testing.assert_array_equal(spread[32 + offset : 36 + offset], scales[4:])
    assert np.count_nonzero(spread) == scales.size
    np.testing.assert_array_equal(mx.gather_scales(spread, offset), scales)


# --- what is refused -------------------------------------------------------------------------------------------------

GOOD, TALLER = (mx.quantize(np.ones((rows, 8)), nl.float8_e5m2_x4) for rows in (8, 16))
NOT_FINITE = np.where(np.arange(32) == 6, np.nan, 1).reshape(8, 4)
REFUSED: dict[str, tuple[str, Any]] = {
    "a tile of 12 rows": ("8 n rows", lambda: mx.quantize(np.ones((12, 8)), nl.float8_e5m2_x4)),
    "a tile of 6 columns": ("4 m columns", lambda: mx.quantize(np.ones((8, 6)), nl.float8_e5m2_x4)),
    "an empty tile": ("8 n rows", lambda: mx.quantize(np.ones((0, 8)), nl.float8_e5m2_x4)),
    "a plain dtype": ("a packed dtype", lambda: mx.quantize(np.ones((8, 8)), ml_dtypes.float8_e5m2)),
    "no dtype": ("a packed dtype", lambda: mx.quantize(np.ones((8, 8)), "float99")),
    "NaN": (r"values\[1, 2\] is nan", lambda: mx.quantize(NOT_FINITE, "float8_e5m2_x4")),
    "a rule of its own": ("rule must be", lambda: mx.quantize(np.ones((8, 8)), nl.float8_e5m2_x4, "mine")),  # type: ignore[arg-type]
    "float4 as quantize_mx makes it": (
        "with a float8 dtype",
        lambda: mx.quantize(np.ones((8, 8)), nl.float4_e2m1fn_x4, "quantize_mx"),
    ),
    "packing float32": ("pack takes", lambda: mx.pack(np.ones((4, 4), np.float32))),
    "packing threes": ("pack takes", lambda: mx.pack(np.ones((4, 3), ml_dtypes.float8_e5m2))),
    "unpacking integers": ("a packed dtype", lambda: mx.unpack(np.ones((4, 4), np.uint32))),
    "scales of another shape": ("have scales", lambda: mx.dequantize(GOOD[0], GOOD[1][:, :1])),
    "scales of float32": ("scales are a matrix", lambda: mx.dequantize(GOOD[0], np.ones((1, 2), np.float32))),
    "other partitions": ("one number of partitions", lambda: mx.matmul(GOOD[0], TALLER[0], GOOD[1], TALLER[1])),
    "six scales": ("come by 4 rows", lambda: mx.spread_scales(np.ones((6, 2), np.uint8))),
    "an offset of 2": ("not at 2", lambda: mx.spread_scales(np.ones((4, 2), np.uint8), 2)),
    "half a quadrant": ("by quadrants", lambda: mx.gather_scales(np.ones((16, 2), np.uint8))),
    "an odd matrix": ("multiple of 4", lambda: mx.interleave(np.ones((6, 2)))),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    """ValueError, in a sentence."""
    text, body = REFUSED[case]
    with pytest.raises(ValueError, match=text):
        body()


# --- in and out of kernels -------------------------------------------------------------------------------------------


def copied(data: Any, scales: Any, dtype: Any = None) -> Any:
    """A kernel that takes packed elements and scales through SBUF, by the ways there are."""
    if dtype is not None:
        data = data.view(dtype)
    half = data.shape[1] // 2
    tile = nl.ndarray(data.shape, data.dtype, buffer=nl.sbuf)
    nisa.memset(tile, 0)
    nisa.dma_copy(dst=tile[:, :half], src=data[:, :half])
    loaded = nl.load(data[:, half:])
    nisa.tensor_copy(tile[:, half:], loaded)
    moved = nl.ndarray(tile.shape, tile.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=moved, src=tile)
    out = nl.ndarray(data.shape, data.dtype, buffer=nl.shared_hbm)
    nl.store(out, moved)
    out_scales = nl.ndarray(scales.shape, scales.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out_scales, src=nl.load(scales))
    return out, out_scales


@EACH
def test_packed_arrays_go_through_a_kernel(form: Scalar) -> None:
    """As arguments and results, loaded, copied, sliced and stored: bit for bit and in their own dtype."""
    codes = np.random.default_rng(1).integers(0, 2**form.width, (32, 24))
    packed = mx.pack(elements_of(form, codes))
    scales = np.arange(24, dtype=np.uint8).reshape(4, 6).view(ml_dtypes.float8_e8m0fnu)
    data, out_scales = nkitools.simulate(copied, packed, scales, chip="trn3").outputs
    assert (data.dtype, out_scales.dtype) == (packed.dtype, scales.dtype)
    np.testing.assert_array_equal(mx.unpack(data).view(np.uint8), codes)
    np.testing.assert_array_equal(out_scales.view(np.uint8), scales.view(np.uint8))


@EACH
@pytest.mark.parametrize("width", [1, 2, 4])
def test_plain_integers_become_packed_elements_in_a_kernel(form: Scalar, width: int) -> None:
    """Whatever their width is, .view(dtype) reinterprets their bytes."""
    codes = np.random.default_rng(2).integers(0, 2**form.width, (32, 32))
    packed = mx.pack(elements_of(form, codes))
    bits = packed.view(f"<u{width}") if width <= form.packed.itemsize else packed.view(np.uint8).view(np.uint32)
    data, _ = nkitools.simulate(copied, bits, np.zeros((4, 2), np.uint8), form.packed, chip="trn3").outputs
    assert data.dtype == packed.dtype
    np.testing.assert_array_equal(mx.unpack(data).view(np.uint8), codes)


def test_torch_sends_bytes() -> None:
    """torch has no packed dtype, so that its bytes are reinterpreted on the way in and on the way out."""
    torch = pytest.importorskip("torch")

    def kernel(data: Any) -> Any:
        out = nl.ndarray(data.shape, data.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out.view(nl.float4_e2m1fn_x4), src=data.view(nl.float4_e2m1fn_x4))
        return out

    packed, _ = mx.quantize(np.random.default_rng(3).standard_normal((32, 16)), nl.float4_e2m1fn_x4)
    sent = torch.from_numpy(packed.view(np.uint8))
    assert torch.equal(nkitools.simulate(kernel, sent, chip="trn3").outputs, sent)


def test_weights_of_the_host_meet_activations_of_the_device() -> None:
    """MXFP4 weights packed here, MXFP8 activations quantised there: the product is that of the two references."""
    random = np.random.default_rng(4)
    weights, activations = random.standard_normal((512, 16)), random.standard_normal((512, 40))
    w, w_scales = mx.quantize(mx.interleave(weights), nl.float4_e2m1fn_x4)
    x = mx.interleave(activations).astype(ml_dtypes.bfloat16)

    def kernel(w: Any, w_scales: Any, x: Any) -> Any:
        packed = nl.ndarray((128, 40), nl.float8_e4m3fn_x4, buffer=nl.sbuf)
        scales = nl.ndarray((128, 40), nl.float8_e8m0fnu, buffer=nl.sbuf)
        nisa.quantize_mx(packed, nl.load(x), scales)
        product = nl.ndarray((16, 40), nl.float32, buffer=nl.psum)
        nisa.nc_matmul_mx(product, nl.load(w), packed, nl.load(w_scales), scales)
        out = nl.ndarray((16, 40), nl.float32, buffer=nl.shared_hbm)
        nl.store(out, nl.copy(product))
        return out

    got = nkitools.simulate(kernel, w, mx.spread_scales(w_scales), x, chip="trn3").outputs
    q, q_scales = mx.quantize(x, nl.float8_e4m3fn_x4, "quantize_mx")
    magnitudes = [np.abs(mx.dequantize(*each)).reshape(128, -1, 4) for each in ((w, w_scales), (q, q_scales))]
    bound = 512 * 2.0**-24 * np.einsum("pmi,pni->mn", *magnitudes)  # what any order of float32 sums may lose
    assert (np.abs(got - mx.matmul(w, q, w_scales, q_scales)) <= bound).all()
