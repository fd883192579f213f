"""nisa.nc_transpose: bits moved, on either engine and every generation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from tests.isa.issued import Tile, empty, inside, issue, placed, refusal, tile
from tests.isa.oracles import FLOATS, INTEGERS, sample, words

TENSOR, VECTOR = {"engine": nisa.engine.tensor}, {"engine": nisa.engine.vector}


@given(st.integers(1, 128), st.integers(1, 128), st.sampled_from(["trn1", "trn2", "trn3"]))
def test_a_transpose_is_numpys(partitions: int, free: int, chip: str) -> None:
    """On the Tensor Engine, from SBUF to PSUM."""
    x = sample((partitions, free))
    issued = issue(nisa.nc_transpose, empty((free, partitions), memory="psum"), tile(x), chip=chip)
    np.testing.assert_array_equal(issued.dst, x.T)
    assert issued.instruction.engine == "tensor"


@pytest.mark.parametrize("chip", ["trn1", "trn2", "trn3"])
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, nl.bool_], ids=str)
@pytest.mark.parametrize("engine", [TENSOR, VECTOR], ids=["tensor", "vector"])
def test_any_dtype_keeps_its_bits(dtype: Any, engine: Any, chip: str) -> None:
    """All 32 bits of an int32 too."""
    if dtype in INTEGERS:
        x = words((32, 20), dtype)
    else:
        x = sample((32, 20), nl.float32).astype(dtype.dtype) if dtype is nl.bool_ else sample((32, 20), dtype)
    memory = "psum" if engine is TENSOR else "sbuf"
    issued = issue(nisa.nc_transpose, empty((20, 32), dtype, memory), tile(x, dtype=dtype), **engine, chip=chip)
    np.testing.assert_array_equal(issued.dst, x.T)


@given(st.integers(1, 32), st.integers(1, 32), st.integers(0, 2**32 - 1))
def test_twice_is_nothing(partitions: int, free: int, seed: int) -> None:
    """A transpose is its own inverse."""
    x = sample((partitions, free), seed=seed)
    once = issue(nisa.nc_transpose, empty((free, partitions)), tile(x), **VECTOR).dst
    twice = issue(nisa.nc_transpose, empty((partitions, free)), tile(once), **VECTOR).dst
    np.testing.assert_array_equal(twice, x)


NOT_FINITE = np.array([[1, np.nan, 3, 4], [5, 6, np.inf, 8], [9, 10, 11, np.inf], [13, 14, 15, -np.inf]], np.float32)


@pytest.mark.parametrize(("chip", "engine"), [("trn2", TENSOR), ("trn3", TENSOR), ("trn1", VECTOR)])
def test_not_a_number_and_infinity_are_moved_like_any_bits(chip: str, engine: Any) -> None:
    """ "Starting NeuronCore-v3, all Tensor Engine transpose is bit-accurate"; the Vector Engine's always was."""
    memory = "psum" if engine is TENSOR else "sbuf"
    result = issue(nisa.nc_transpose, empty((4, 4), memory=memory), tile(NOT_FINITE), **engine, chip=chip).dst
    np.testing.assert_array_equal(result.view(np.uint32), NOT_FINITE.T.copy().view(np.uint32))


def test_the_tensor_engine_of_neuron_core_v2_spreads_them() -> None:
    """It multiplies by an identity: wherever NaN or infinity meets a 0, the sum is NaN; one infinity meets the 1."""
    nan = np.nan
    result = issue(nisa.nc_transpose, empty((4, 4), memory="psum"), tile(NOT_FINITE), chip="trn1").dst
    np.testing.assert_array_equal(result, [[1, 5, 9, 13], [nan] * 4, [nan, np.inf, nan, nan], [nan] * 4])
    half = issue(
        nisa.nc_transpose, empty((4, 4), nl.bfloat16, "psum"), tile(NOT_FINITE.astype(nl.bfloat16.dtype)), chip="trn1"
    ).dst
    np.testing.assert_array_equal(np.isnan(half.astype(np.float32)), np.isnan(result))


@pytest.mark.parametrize(
    ("source", "target", "shape", "engine"),
    [
        ("sbuf", "psum", (32, 32), "tensor"),
        ("sbuf", "sbuf", (32, 32), "vector"),
        ("psum", "sbuf", (8, 4), "vector"),
        ("psum", "psum", (32, 1), "vector"),
        ("sbuf", "psum", (33, 2), "tensor"),
    ],
)
def test_the_default_engine_follows_the_memories_and_the_size(
    source: str, target: str, shape: tuple[int, int], engine: str
) -> None:
    """The Tensor Engine reads SBUF and writes PSUM; the Vector Engine does up to 32 x 32 anywhere."""
    x = sample(shape)
    issued = issue(nisa.nc_transpose, empty(shape[::-1], memory=target), tile(x, source))
    np.testing.assert_array_equal(issued.dst, x.T)
    assert issued.instruction.engine == engine


def test_free_dimensions_are_one() -> None:
    """Several free dimensions are flattened, of the data and of the destination; views are read in their order."""
    x = sample((16, 4, 6))
    issued = issue(nisa.nc_transpose, empty((24, 2, 8), memory="psum"), tile(x))
    np.testing.assert_array_equal(issued.dst, x.reshape(16, 24).T.reshape(24, 2, 8))
    turned = tile(x, view=lambda t: t.permute((0, 2, 1)))
    issued = issue(nisa.nc_transpose, empty((24, 16), memory="psum"), turned)
    np.testing.assert_array_equal(issued.dst, x.transpose(0, 2, 1).reshape(16, 24).T)


def test_in_place() -> None:
    """All is read before it is written where the rules let a transpose overwrite its own source (NK510)."""
    x = sample((32, 32))
    data = tile(x)
    np.testing.assert_array_equal(issue(nisa.nc_transpose, data, data, rules="report", **VECTOR).dst, x.T)


def test_a_second_transpose_overwrites() -> None:
    """Unlike nc_matmul it does not accumulate."""
    x = sample((8, 8))

    def body() -> np.ndarray:
        dst, data = placed(empty((8, 8), memory="psum")), placed(tile(x))
        nisa.nc_transpose(dst, data)
        nisa.nc_transpose(dst, data)
        return np.array(dst.array)

    np.testing.assert_array_equal(inside(body), x.T)


X = np.ones((32, 8), np.float32)
DST = empty((8, 32), memory="psum")
REFUSED: dict[str, tuple[str, str, tuple[Any, ...], dict[str, Any]]] = {
    "256 partitions": ("NK101", "`data`", (empty((2, 256), memory="psum"), tile(np.ones((256, 2), np.float32))), {}),
    "too long for the Tensor Engine": (
        "NK107",
        "`data`",
        (empty((129, 8), memory="psum"), tile(np.ones((8, 129), np.float32))),
        {},
    ),
    "bank": ("NK106", "`dst`", (Tile((8, 600), None, nl.float32, "psum", lambda t: t[:, 500:532]), tile(X)), {}),
    "start": ("NK108", "`data`", (DST, tile(np.ones((64, 8), np.float32), view=lambda t: t[1:33, :])), {}),
    "not the transpose": ("NK109", "`dst`", (empty((32, 8), memory="psum"), tile(X)), {}),
    "dtype": ("NK302", "`dst`", (empty((8, 32), nl.bfloat16, "psum"), tile(X)), {}),
    "Tensor Engine from PSUM": ("NK201", "`data`", (DST, tile(X, "psum")), TENSOR),
    "Tensor Engine to SBUF": ("NK201", "`dst`", (empty((8, 32)), tile(X)), TENSOR),
    "from HBM": ("NK201", "`data`", (DST, tile(X, "hbm")), {}),
    "Vector Engine from HBM": ("NK201", "`data`", (empty((8, 32)), tile(X, "hbm")), VECTOR),
    "large in SBUF": ("NK201", "`dst`", (empty((64, 8)), tile(np.ones((8, 64), np.float32))), {}),
    "Scalar Engine": ("NK206", "`engine`", (DST, tile(X)), {"engine": nisa.engine.scalar}),
    "engine of text": ("NK609", "`engine`", (DST, tile(X)), {"engine": "tensor"}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    """One finding, of the documented rule, that names the operand."""
    rule, named, args, kwargs = REFUSED[case]
    finding = refusal(nisa.nc_transpose, *args, **kwargs)
    assert finding.rule == rule
    assert named in finding.message
