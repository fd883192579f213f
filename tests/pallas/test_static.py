"""What is said of blocks and dtypes without a compiler is what the compiler says."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402

from nkitools.pallas import check  # noqa: E402
from nkitools.pallas.compiler import why_not  # noqa: E402
from nkitools.pallas.static import bit_width, tile_rows  # noqa: E402
from tests.pallas.kernels import copy, like, ones, whole  # noqa: E402
from tests.pallas.measured import takes  # noqa: E402

# dtype, rows of the array, rows of a block, and whether the compiler takes it (v5e; libtpu 0.0.42 to 0.0.49, of which
# the next one takes all).
TILES = [
    (np.int8, 32, 8, False),
    (np.int8, 33, 8, True),
    (np.int8, 40, 16, True),
    (np.int8, 64, 40, False),
    (np.int8, 96, 32, True),
    (np.int8, 96, 24, False),
    (ml_dtypes.int4, 32, 8, True),
    (ml_dtypes.int4, 64, 32, False),
    (ml_dtypes.int4, 96, 8, True),
    (ml_dtypes.int4, 128, 64, True),
    (ml_dtypes.bfloat16, 32, 8, True),
    (np.bool_, 32, 8, True),
]

# dtype, operation, chip, and whether its compiler takes it.
ARITHMETIC = [
    (np.int8, jnp.add, "v6e", False),
    (np.uint8, jnp.maximum, "v5e", False),
    (ml_dtypes.float8_e4m3fn, jnp.subtract, "tpu7x", False),
    (np.int16, jnp.multiply, "v5e", True),
    (np.int8, jnp.bitwise_and, "v5e", True),
    (ml_dtypes.bfloat16, jnp.divide, "v4", True),
]


def rules(fn: Any, *args: Any, chip: str = "v5e") -> list[str]:
    """What the models say, and the compiler too where it is there: it would take back what they say in vain."""
    run = check(fn, *args, modes=("lower", "aot"), chips=chip)
    found = [finding.rule for finding in run.findings]
    if not why_not():
        assert run.compiled[chip].accepted is (not found)
    return found


@pytest.mark.parametrize(("dtype", "rows", "block", "fits"), TILES)
def test_tiles(dtype: Any, rows: int, block: int, fits: bool) -> None:
    """A block takes whole tiles, which depend on the dtype and on the rows of the array."""

    def call(x: Any) -> Any:
        spec = pl.BlockSpec((block, 128), lambda i: (i, 0))
        grid = (pl.cdiv(rows, block),)
        return pl.pallas_call(copy, out_shape=like(x), grid=grid, in_specs=[spec], out_specs=spec)(x)

    assert rules(call, ones((rows, 128), dtype)) == ([] if fits or takes("libtpu 0.0.50") else ["PL102"])


@pytest.mark.parametrize(("dtype", "operation", "chip", "fits"), ARITHMETIC)
def test_arithmetic(dtype: Any, operation: Any, chip: str, fits: bool) -> None:
    """Vector units compute in 16 and 32 bits."""

    def kernel(x: Any, y: Any, o: Any) -> None:
        o[...] = operation(x[...], y[...])

    def call(x: Any, y: Any) -> Any:
        return pl.pallas_call(kernel, out_shape=like(x))(x, y)

    assert rules(call, ones((32, 128), dtype), ones((32, 128), dtype), chip=chip) == ([] if fits else ["PL105"])


@pytest.mark.parametrize(("chip", "fits"), [("v4", False), ("v5e", True)])
def test_matrices_of_8_bits(chip: str, fits: bool) -> None:
    """A v4 does not multiply them."""

    def kernel(x: Any, o: Any) -> None:
        o[...] = jnp.dot(x[...], x[...], preferred_element_type=jnp.int32).astype(jnp.int8)

    assert rules(whole(kernel), ones((128, 128), np.int8), chip=chip) == ([] if fits else ["PL105"])


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [(np.float32, 32), (np.bool_, 32), (ml_dtypes.bfloat16, 16), (ml_dtypes.float8_e4m3fn, 8), (ml_dtypes.int4, 4)],
)
def test_bits(dtype: Any, bits: int) -> None:
    """As many as an element takes in vector memory."""
    assert bit_width(np.dtype(dtype)) == bits
    assert tile_rows(256, bits) == max(8, 256 // bits if bits < 16 else 8)
