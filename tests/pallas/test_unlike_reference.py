"""With a reference, wrong outputs are followed to their blocks, the points that wrote them and the index map."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402

from nkitools.pallas import check  # noqa: E402
from tests.cases import each  # noqa: E402
from tests.pallas.kernels import like  # noqa: E402

WATCHED = ("interpret", "tpu_interpret")
X = np.arange(256.0 * 256, dtype=np.float32).reshape(256, 256) / 7
Y = np.random.default_rng(3).normal(size=X.shape).astype(np.float32) * 1000


def line_of(mark: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"  # {mark}"))


def added(x: Any, y: Any, *, y_map: Any, wrong: float = 0.0) -> Any:
    def kernel(x_ref: Any, y_ref: Any, o_ref: Any) -> None:
        last = (pl.program_id(0) == 1) & (pl.program_id(1) == 1)
        o_ref[...] = x_ref[...] + y_ref[...]
        o_ref[0, 0] += jnp.where(last, wrong, 0.0)

    block = pl.BlockSpec((128, 128), lambda i, j: (i, j))
    specs = [block, pl.BlockSpec((128, 128), y_map)]
    return pl.pallas_call(kernel, out_shape=like(x), grid=(2, 2), in_specs=specs, out_specs=block)(x, y)


def product(x: Any, y: Any) -> Any:
    def kernel(x_ref: Any, y_ref: Any, o_ref: Any) -> None:
        @pl.when(pl.program_id(2) == 0)
        def _() -> None:
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += x_ref[...] @ y_ref[...]

    return pl.pallas_call(
        kernel,
        out_shape=like(x),
        grid=(2, 2, 2),
        in_specs=[
            pl.BlockSpec((128, 128), lambda i, j, k: (i, k)),
            pl.BlockSpec((128, 128), lambda i, j, k: (j, k)),  # transposed
        ],
        out_specs=pl.BlockSpec((128, 128), lambda i, j, k: (i, j)),
    )(x, y)


def swapped_output(x: Any, y: Any) -> Any:
    def kernel(x_ref: Any, y_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] + y_ref[...]

    block = pl.BlockSpec((128, 128), lambda i, j: (i, j))
    out = pl.BlockSpec((128, 128), lambda i, j: (j, i))  # swapped
    return pl.pallas_call(kernel, out_shape=like(x), grid=(2, 2), in_specs=[block, block], out_specs=out)(x, y)


def wrong_block(x: Any, y: Any) -> Any:
    return added(x, y, y_map=lambda i, j: (i, j), wrong=1e6)


def constant_map(x: Any, y: Any) -> Any:
    return added(x, y, y_map=lambda i, j: (0, j))  # constant


# What mends the outputs names the cause: the same symptom has several.
MISTAKES = [
    (
        constant_map,
        lambda: X + Y,
        "constant",
        (1, 0),
        "with grid index 0 instead of 0 as block index 0 in the index map",
    ),
    (
        product,
        lambda: np.float64(X) @ np.float64(Y),
        "transposed",
        (0, 0),
        "with grid indices 1 and 2 exchanged in the",
    ),
    (swapped_output, lambda: X + Y, "swapped", (1, 0), "block indices 0 and 1 are exchanged"),
    (
        wrong_block,
        lambda: X + Y,
        "",
        (1, 1),
        "1 of 4 blocks differ from the reference, the first is block (1, 1) in 1 of",
    ),
]


@each("fn, reference, mark, point, text", MISTAKES)
def test_wrong_blocks_are_followed_to_the_index_map_and_to_the_point_that_wrote_them(
    fn: Any, reference: Any, mark: str, point: tuple[int, ...], text: str
) -> None:
    """Where no index map is at fault, the block and its grid point say where the kernel is."""
    (found,) = check(fn, X, Y, modes=WATCHED, reference=lambda x, y: reference()).findings
    assert (found.rule, found.program[-2:] if len(found.program) == 2 else found.program[:2]) == ("PL211", point)
    assert text in found.message
    assert not mark or found.line == line_of(mark)


def test_outputs_within_the_tolerance_are_no_finding_and_other_shapes_are_an_error() -> None:
    """By default the dtype decides; with numbers of the caller they do."""

    def doubled(x: Any) -> Any:
        return pl.pallas_call(lambda x_ref, o_ref: o_ref.__setitem__(..., x_ref[...] * 2), out_shape=like(x))(x)

    near = X[:8, :128] * np.float32(2.00001)
    assert check(doubled, X[:8, :128], modes=WATCHED, reference=near).findings == []
    (found,) = check(doubled, X[:8, :128], modes=WATCHED, reference=near, rtol=1e-7).findings
    assert (found.rule, "o_ref[0:8, 1:128]" in found.message) == ("PL211", True)
    (found,) = check(lambda x: doubled(x).T + 1, X[:8, :128], modes=WATCHED, reference=X[:8, :128].T).findings
    assert "outputs[0]" in found.message
    with pytest.raises(ValueError, match=r"outputs have shapes \[\(8, 128\)\], and the reference \[\(128, 8\)\]"):
        check(doubled, X[:8, :128], modes=WATCHED, reference=near.T)
    for tolerance in ({"rtol": 1e-3}, {"atol": 0.0}):
        with pytest.raises(ValueError, match="differences from `reference`"):
            check(doubled, X[:8, :128], modes=WATCHED, **tolerance)


def in_place(x: Any, y: Any, *, scalars: int) -> Any:
    """Add twice ``x`` to ``y``, in the memory of ``y``."""

    def kernel(*refs: Any) -> None:
        x_ref, y_ref, o_ref = refs[scalars:]
        o_ref[...] = y_ref[...] + 2 * x_ref[...]

    block = pl.BlockSpec((128, 256), lambda i, *_: (i, 0))
    specs = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=scalars, grid=(2,), in_specs=[block, block], out_specs=block
    )
    call = pl.pallas_call(kernel, out_shape=like(x), grid_spec=specs, input_output_aliases={scalars + 1: 0})
    return call(*[jnp.zeros((1,), jnp.int32)] * scalars, x, y)


@pytest.mark.parametrize("scalars", [0, 2])
def test_an_output_in_place_of_an_input_has_its_line(scalars: int) -> None:
    """The kernel, the block and the point that wrote it, beside prefetched scalars too."""
    given = partial(in_place, scalars=scalars)
    (found,) = check(given, X, Y, modes=WATCHED, reference=lambda x, y: x + y).findings
    assert (found.rule, found.file, found.function) == ("PL211", __file__, "kernel")
    assert found.line == in_place.__code__.co_firstlineno + 3
    assert "output `out_specs[0]` (float32 [256, 256], block (128, 256)): 2 of 2 blocks differ" in found.message
    assert "written last at grid point (0,)" in found.message
    assert check(given, X, Y, modes=WATCHED, reference=lambda x, y: 2 * x + y).findings == []
