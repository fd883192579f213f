"""Forms of modern kernels that production kernels use and the documents exclude: computed, with NK621 or NK508."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest

import nkitools
from tests.issue.outcomes import done

X = np.random.default_rng(7).standard_normal((128, 64)).astype(np.float32)


def test_the_vector_engine_transposes_large_tiles() -> None:
    """All of the tile, with NK621 at each line."""

    @nki.jit
    def kernel(x: Any) -> Any:
        out = nl.ndarray((64, 128), dtype=x.dtype, buffer=nl.shared_hbm)
        turned = nl.ndarray((64, 128), dtype=x.dtype, buffer=nl.sbuf)
        nisa.nc_transpose(dst=turned, data=nl.load(x), engine=nisa.engine.vector)
        nisa.dma_copy(dst=out, src=turned)
        return out

    for _ in range(2):
        output, findings = done(kernel, X)
        assert [each.rule for each in findings] == ["NK621"]
        np.testing.assert_array_equal(output, X.T)


def test_the_tensor_engine_widens_what_it_transposes() -> None:
    """Of bfloat16 into float32 in PSUM, every value exactly, with NK621."""

    @nki.jit
    def kernel(x: Any) -> Any:
        out = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.shared_hbm)
        turned = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_transpose(dst=turned, data=nl.load(x))
        nl.store(out, nl.copy(turned))
        return out

    narrow = X.astype(ml_dtypes.bfloat16)
    output, findings = done(kernel, narrow)
    assert [each.rule for each in findings] == ["NK621"]
    np.testing.assert_array_equal(output, narrow.T.astype(np.float32))


def test_a_dma_transposes_without_generated_descriptors() -> None:
    """dge_mode=none of a direct source is NK621."""

    @nki.jit
    def kernel(x: Any) -> Any:
        out = nl.ndarray((64, 128), dtype=x.dtype, buffer=nl.shared_hbm)
        turned = nl.ndarray((64, 128), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_transpose(dst=turned, src=x, dge_mode=nisa.dge_mode.none)
        nisa.dma_copy(dst=out, src=turned)
        return out

    output, findings = done(kernel, X)
    assert [each.rule for each in findings] == ["NK621"]
    np.testing.assert_array_equal(output, X.T)


def test_a_mode_of_matmuls_may_be_a_string() -> None:
    """perf_mode="double_row" is NK621 at each line, and multiplies as the member of the enum does."""

    @nki.jit
    def kernel(x: Any, y: Any, mode: Any) -> Any:
        out = nl.ndarray((16, 24), dtype=nl.float32, buffer=nl.shared_hbm)
        sums = nl.ndarray((16, 24), dtype=nl.float32, buffer=nl.psum)
        left, right = nl.load(x), nl.load(y)
        for turn in range(3):
            nisa.nc_matmul(dst=sums, stationary=left, moving=right, perf_mode=mode, accumulate=turn > 0)
        nl.store(out, nl.copy(sums))
        return out

    rng = np.random.default_rng(2)
    x, y = (rng.integers(-4, 5, (32, 2, width)).astype(ml_dtypes.float8_e4m3) for width in (16, 24))
    for mode, rules in (("double_row", ["NK621"]), (nisa.matmul_perf_mode.double_row, [])):
        output, findings = done(kernel, x, y, mode)
        assert sorted({each.rule for each in findings}) == rules
        rows = (each.astype(np.float32).reshape(64, -1) for each in (x, y))
        np.testing.assert_array_equal(output, 3 * (next(rows).T @ next(rows)))


def test_probabilities_above_one_drop_everything() -> None:
    """NK621, as AWS's own test passes them; a negative one is NK609."""

    @nki.jit
    def kernel(x: Any, prob: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        kept = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.dropout(dst=kept, data=nl.load(x), prob=nl.load(prob))
        nisa.dma_copy(dst=out, src=kept)
        return out

    prob = np.array([[0.0], [57.5]] * 64, np.float32)
    output, findings = done(kernel, X, prob)
    assert [each.rule for each in findings] == ["NK621"]
    np.testing.assert_array_equal(output, np.where(prob == 0, X, 0))
    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(kernel, X, -prob)
    assert caught.value.finding.rule == "NK609"


def test_tiles_are_assigned_to_views() -> None:
    """By DMA from and to HBM, by a copy on chip, each with NK621."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((128, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        tile = nl.ndarray((128, 8), dtype=nl.bfloat16, buffer=nl.sbuf)
        tile[:, 0:4] = x[:, 4:8]
        tile[:, 4:8] = nl.load(x[:, 0:4])
        for column in range(8):
            out[:, column] = tile[:, column]
        return out

    x = np.random.default_rng(0).standard_normal((128, 8)).astype(np.float32)
    run = nkitools.simulate(kernel, x)
    swapped = np.concatenate([x[:, 4:], x[:, :4]], axis=1)
    assert np.array_equal(run.outputs, swapped.astype(ml_dtypes.bfloat16).astype(np.float32))
    assert [each.name for each in run.instructions] == ["dma_copy", "dma_copy", "tensor_copy", *["dma_copy"] * 8]
    said = [(each.rule, each.remedy, each.count) for each in run.findings if each.rule != "NK701"]
    by_dma, on_chip = (f"Write nisa.{name}(dst=tensor[...], src=value)." for name in ("dma_copy", "tensor_copy"))
    assert said == [("NK621", by_dma, 1), ("NK621", on_chip, 1), ("NK621", by_dma, 8)]


def test_an_assignment_must_fit() -> None:
    """No broadcast is seen in the kernels that assign: another number of elements is NK109."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((128, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        out[:, 0:4] = nl.load(x[:, 0:1])
        return out

    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(kernel, np.ones((128, 8), np.float32))
    assert caught.value.finding.rule == "NK109"


@pytest.mark.parametrize("ranged", [nl.affine_range, range])
def test_a_range_as_an_index_is_a_slice(ranged: Any) -> None:
    """Of each dimension its own, with a step, too; one that does not lie within the tensor is NK402."""

    def kernel(x: Any, first: int) -> Any:
        rows, columns = ranged(first, 128), ranged(1, 8, 2)
        out = nl.ndarray((128, 4), dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(out[ranged(128), ranged(4)], nl.load(x[rows, columns]))
        return out

    x = np.arange(1024, dtype=np.float32).reshape(128, 8)
    run = nkitools.simulate(kernel, x, 0)
    assert np.array_equal(run.outputs, x[:, 1::2])
    assert [each.rule for each in run.findings if each.rule == "NK621"] == ["NK621"] * 2
    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(kernel, x, -1)
    assert caught.value.finding.rule == "NK402"
