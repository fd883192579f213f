"""Casts against oracles of their own: exact fractions for floats, Python's integers for integers."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nkitools.chip.dtypes import DTYPES, DType, as_dtype
from nkitools.chip.numerics import cast, round_to_tfloat32, through_float32, to_float32
from tests.chip.models import refused

# Overflow and signalling NaN are results here; a launch runs under np.errstate(all="ignore").
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

INTEGERS = ("int8", "int16", "int32", "uint8", "uint16", "uint32")
# (exponent bits, mantissa bits, exponent bias, what lies beyond the largest number); the formats' own definitions.
FORMATS: dict[str, tuple[int, int, int, str]] = {
    "float16": (5, 10, 15, "inf"),
    "bfloat16": (8, 7, 127, "inf"),
    "tfloat32": (8, 10, 127, "inf"),
    "float8_e5m2": (5, 2, 15, "inf"),
    "float8_e4m3": (4, 3, 7, "inf"),
    "float8_e4m3fn": (4, 3, 7, "nan"),
}
FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)


def array(*values: Any) -> np.ndarray:
    """A float32 array of values."""
    return np.array(values, np.float32)


def cast_one(value: float, name: str) -> float:
    """One float32 through ``cast``, read back exactly."""
    return float(cast(array(value), DTYPES[name]).astype(np.float32)[0])


def nearest(value: float, name: str) -> float:
    """``value`` in a format, nearest with ties to even, in exact arithmetic."""
    exponent_bits, mantissa_bits, bias, beyond = FORMATS[name]
    exact = abs(Fraction(value))
    if not exact:
        return value
    lowest = 1 - bias
    exponent = lowest
    while exact >= Fraction(2) ** (exponent + 1):
        exponent += 1
    step = Fraction(2) ** (exponent - mantissa_bits)
    rounded = round(exact / step) * step  # Fraction rounds halves to even
    reserved = 0 if beyond == "nan" else 1  # e4m3fn spends only the last mantissa of its last exponent on NaN
    top = 2**exponent_bits - 1 - bias - reserved
    last = Fraction(2) - Fraction(2) ** -mantissa_bits * (2 if beyond == "nan" else 1)
    if rounded > last * Fraction(2) ** top:
        return np.copysign(np.inf, value) if beyond == "inf" else np.nan
    return float(np.copysign(float(rounded), value))


@st.composite
def near_ties(draw: st.DrawFn, name: str) -> float:
    """A float32 half-way between two neighbours of a format, or next to that."""
    _, mantissa_bits, bias, _ = FORMATS[name]
    exponent = draw(st.integers(-bias - mantissa_bits - 1, bias + 1))
    mantissa = draw(st.integers(0, 2 ** (mantissa_bits + 2) - 1))
    value = np.float32(np.ldexp(np.float64(mantissa), exponent - mantissa_bits - 1))
    value = np.nextafter(value, np.float32(draw(st.sampled_from((np.inf, -np.inf, float(value))))))
    return float(value) * draw(st.sampled_from((1, -1))) if np.isfinite(value) else 0.0


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
def test_floats_round_to_nearest_even(name: str, data: st.DataObject) -> None:
    """Any float32, and those at and beside the ties, subnormals and the largest number included."""
    value = data.draw(st.one_of(FLOATS, near_ties(name), st.floats(-1000, 1000, width=32)))
    found, expected = cast_one(value, name), nearest(value, name)
    assert found == expected or (np.isnan(found) and np.isnan(expected)), (value, found, expected)
    assert np.signbit(found) == np.signbit(value) or np.isnan(found)


@pytest.mark.parametrize("name", FORMATS)
def test_infinities_and_nan_stay_what_they_are(name: str) -> None:
    """Where the format has no infinity, it becomes NaN."""
    assert np.isnan(cast_one(np.nan, name))
    if FORMATS[name][3] == "inf":
        assert cast_one(np.inf, name) == np.inf
        assert cast_one(-np.inf, name) == -np.inf
    else:
        assert np.isnan(cast_one(np.inf, name))


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e5m2", "float8_e4m3", "float8_e4m3fn"])
def test_every_number_of_a_format_survives(name: str) -> None:
    """To float32 and back changes no bit (of a number; NaN has many)."""
    dtype = DTYPES[name]
    every = np.arange(1 << (8 * dtype.itemsize), dtype=f"u{dtype.itemsize}").view(dtype.dtype)
    wide = to_float32(every)
    back = cast(wide, dtype)
    numbers = ~np.isnan(wide)
    unsigned = f"u{dtype.itemsize}"
    np.testing.assert_array_equal(back.view(unsigned)[numbers], every.view(unsigned)[numbers])
    assert np.isnan(back[~numbers].astype(np.float32)).all()


@given(st.floats(width=32))
def test_tfloat32_keeps_ten_mantissa_bits(value: float) -> None:
    """The low 13 bits of the float32 that holds it are zero; what has them zero is kept."""
    once = round_to_tfloat32(array(value))
    if np.isfinite(value):
        assert int(once.view(np.uint32)[0]) & 0x1FFF == 0
    np.testing.assert_array_equal(round_to_tfloat32(once).view(np.uint32), once.view(np.uint32))


def test_tfloat32_keeps_the_shape() -> None:
    """Also of a single number, and of what is not contiguous."""
    assert round_to_tfloat32(np.float32(1.0)).shape == ()  # type: ignore[arg-type]
    matrix = np.ones((4, 6), np.float32)[::2, ::3]
    assert round_to_tfloat32(matrix).shape == (2, 2)


def saturated(value: float, name: str) -> int:
    """A float as an integer: nearest even, clipped; NaN is 0."""
    limits = np.iinfo(name)
    if np.isnan(value):
        return 0
    if np.isinf(value):
        return limits.max if value > 0 else limits.min
    return min(max(round(Fraction(value)), limits.min), limits.max)


@pytest.mark.parametrize("name", INTEGERS)
@given(data=st.data())
def test_floats_saturate_to_integers(name: str, data: st.DataObject) -> None:
    """Round to nearest, ties to even, clip to the integer's range, NaN to 0."""
    limits = np.iinfo(name)
    edges = st.sampled_from([float(limits.min), float(limits.max), 0.0]).flatmap(
        lambda edge: st.integers(-6, 6).map(lambda quarters: float(np.float32(edge + quarters / 4)))
    )
    value = data.draw(st.one_of(st.floats(width=32), edges, st.integers(-600, 600).map(lambda halves: halves / 2)))
    found = cast(array(value), DTYPES[name])
    assert found.dtype == np.dtype(name)
    assert int(found[0]) == saturated(value, name)


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("source", ["float16", "bfloat16", "float8_e4m3", "float8_e5m2"])
def test_narrow_floats_saturate_too(name: str, source: str) -> None:
    """Every number of the narrow format."""
    dtype = DTYPES[source]
    every = np.arange(1 << (8 * dtype.itemsize), dtype=f"u{dtype.itemsize}").view(dtype.dtype)
    found = cast(every, DTYPES[name])
    sample = range(0, every.size, max(1, every.size // 512))
    wide = every.astype(np.float32)
    assert [int(found[i]) for i in sample] == [saturated(float(wide[i]), name) for i in sample]


@given(st.data())
def test_integers_saturate_to_integers(data: st.DataObject) -> None:
    """Between any two of the six."""
    source, target = data.draw(st.sampled_from(INTEGERS)), data.draw(st.sampled_from(INTEGERS))
    limits, wanted = np.iinfo(source), np.iinfo(target)
    values = data.draw(st.lists(st.integers(limits.min, limits.max), min_size=1, max_size=5))
    found = cast(np.array(values, source), DTYPES[target])
    assert found.dtype == np.dtype(target)
    assert found.tolist() == [min(max(value, wanted.min), wanted.max) for value in values]


@given(st.data())
def test_integers_become_the_nearest_float(data: st.DataObject) -> None:
    """In float32 first (where int32 loses low bits), as an engine computes there."""
    source = data.draw(st.sampled_from(INTEGERS))
    limits = np.iinfo(source)
    value = data.draw(st.integers(limits.min, limits.max))
    number = np.array([value], source)
    wide = float(np.float32(value))
    assert float(to_float32(number)[0]) == wide
    for name in ("bfloat16", "float16", "tfloat32"):
        found = float(through_float32(number, DTYPES[name]).astype(np.float32)[0])
        assert found == nearest(wide, name)


@pytest.mark.parametrize("name", [*INTEGERS, "float32", "bfloat16", "float8_e5m2", "float16"])
def test_booleans(name: str) -> None:
    """Everything but zero is true (NaN too); true is one."""
    dtype = DTYPES[name]
    values = np.array([0, 1, 3], np.float32).astype(dtype.dtype)
    assert cast(values, DTYPES["bool"]).tolist() == [False, True, True]
    assert cast(np.array([True, False]), dtype).astype(np.float32).tolist() == [1, 0]
    assert cast(array(np.nan, -0.0), DTYPES["bool"]).tolist() == [True, False]


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_the_same_dtype_is_not_copied(dtype: DType) -> None:
    """Bits pass as they are, those of packed elements and NaN included; tfloat32 is rounded on every write."""
    values = np.arange(16, dtype=np.uint8).view(dtype.dtype)
    assert (cast(values, dtype) is values) == (dtype.name != "tfloat32")


@pytest.mark.parametrize("name", ["float8_e5m2_x4", "float8_e4m3fn_x4", "float4_e2m1fn_x4"])
def test_packed_elements_are_not_numbers(name: str) -> None:
    """NumPy would convert the integer that holds them (NK301)."""
    packed = np.zeros(2, DTYPES[name].dtype)
    for make in (
        lambda: cast(packed, DTYPES["float32"]),
        lambda: cast(packed, DTYPES["tfloat32"]),
        lambda: cast(packed, DTYPES["int32"]),
        lambda: cast(array(1, 2), DTYPES[name]),
        lambda: to_float32(packed),
        lambda: through_float32(packed, DTYPES["bfloat16"]),
    ):
        with refused("NK301", "packed elements"):
            make()


def test_float32_goes_through_float32_as_it_is() -> None:
    """No copy where nothing changes; int32 loses what float32 cannot hold."""
    values = array(1, 2)
    assert to_float32(values) is values
    assert through_float32(values, DTYPES["float32"]) is values
    big = np.array([2**24 + 1, 2**31 - 1], np.int32)
    assert through_float32(big, DTYPES["int32"]).tolist() == [2**24, 2**31 - 1]
    assert as_dtype(through_float32(big, DTYPES["float32"]).dtype) is DTYPES["float32"]


WIDE = (128, 4096)  # two MiB in float32


_USES_UP = """
import resource
import numpy as np
import nkitools.chip.numerics

def use(times):
    for _ in range(times):
        arrays = [np.ones(1 << size, np.uint8) for size in (18, 19, 22)]
        del arrays

use(2)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
use(10)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.process
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="what the GNU C library learns")
def test_arrays_lie_in_memory_of_earlier_ones() -> None:
    """Fresh pages would be 1,200 for each turn."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_TUNABLES"))}
    done = subprocess.run([sys.executable, "-c", _USES_UP], capture_output=True, text=True, check=True, env=clean)
    assert int(done.stdout) < 100


@pytest.mark.parametrize("name", ["bfloat16", "float16", "float8_e4m3", "int32", "int8"])
def test_large_tiles_become_float32_as_small_ones_do(name: str) -> None:
    """Also views: every second column, transposed, one row for all, backwards; in the layout that NumPy gives them."""
    dtype = DTYPES[name].dtype
    whole = np.random.default_rng(3).integers(-100, 100, (128, 8192)).astype(np.float32).astype(dtype)
    row = np.broadcast_to(whole[:1], whole.shape)
    for view in (whole, whole[:, ::2], whole.T, row, whole[::-1], whole.reshape(128, 2, 4096)[:, 1]):
        found, expected = to_float32(view), view.astype(np.float32)
        assert found.tobytes() == expected.tobytes()
        assert found.strides == expected.strides
