"""The corrections that AWS's release notes list for its own simulator (NKI 0.6), each held here as well."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from tests.isa.issued import bank, empty, inside, issue, placed, tile
from tests.isa.oracles import float64, small_integers

LOWEST = float(np.finfo(np.float32).min)


def ran(kernel: Any, *arrays: Any, **kwargs: Any) -> Any:
    """What a kernel returns; no rule speaks."""
    run = nkitools.simulate(kernel, *arrays, **kwargs)
    assert [finding.rule for finding in run.findings] == []
    return run.outputs


# --- NKI 0.6 ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [nl.int8, nl.uint8, nl.int16, nl.int32], ids=str)
def test_float32_becomes_an_integer_as_on_the_chip(dtype: Any) -> None:
    """To the nearest, ties to even, and to the end of the range beyond it."""
    values = np.array([[0.5, 1.5, 2.5, -0.5, -1.5, 2.4999, 1e20, -1e20]], np.float32)
    limits = np.iinfo(dtype.dtype)
    nearest = [0, 2, 2, 0, -2, 2, limits.max, limits.min]
    result = issue(nisa.tensor_copy, empty(values.shape, dtype), tile(values), rules="report").dst
    np.testing.assert_array_equal(result[0], np.maximum(nearest, limits.min))


def test_match_replace_pairs_equal_values_from_the_last_one_on() -> None:
    """Of three equal values the last slot has the first place."""
    data = np.array([[4, 7, 4, 9, 4, 1, 0, 2, 3, 5]], np.float32)
    vals = np.array([[4, 9, 4, 4, 1, 0, 2, 3]], np.float32)
    issued = issue(nisa.nc_match_replace8, empty(data.shape), tile(data), tile(vals), -1.0, empty((1, 8), nl.uint32))
    assert issued.views["dst_idx"].tolist() == [[4, 3, 2, 0, 5, 6, 7, 8]]
    assert issued.dst.tolist() == [[-1, 7, -1, -1, -1, -1, -1, -1, -1, 5]]


def test_find_index_goes_on_to_the_next_occurrence_and_marks_what_is_missing() -> None:
    """Equal values get ascending places, a value that is not there (any more) gets all ones."""
    data = np.array([[4, 7, 4, 9, 4, 1, 0, 2]], np.float32)
    vals = np.array([[4, 4, 4, 4, 7, 8, 2, 0]], np.float32)
    for dtype in (nl.uint32, nl.uint16):
        ones = np.iinfo(dtype.dtype).max
        issued = issue(nisa.nc_find_index8, empty((1, 8), dtype), tile(data), tile(vals))
        assert issued.dst.tolist() == [[0, 2, 4, ones, 1, ones, 7, 6]]


def test_a_reduction_into_a_part_of_its_own_destination_stays() -> None:
    """The sums are written after the activations, so that they are what an aliased column holds."""
    x = small_integers((16, 8), 1)

    def body() -> np.ndarray:
        out, data = placed(empty((16, 8))), placed(tile(x))
        sums = out[:, 0:1]
        nisa.activation(
            out, nl.square, data, reduce_op=nl.add, reduce_res=sums, reduce_cmd=nisa.reduce_cmd.reset_reduce
        )
        return np.array(out.array)

    result = inside(body)
    np.testing.assert_array_equal(result[:, 0], (float64(x) ** 2).sum(axis=1))
    np.testing.assert_array_equal(result[:, 1:], float64(x)[:, 1:] ** 2)


def test_double_row_gives_a_result_of_one_row_each() -> None:
    """The pairs of rows are contracted; the result is not larger for them."""
    x, y = small_integers((64, 2, 16), 1), small_integers((64, 2, 40), 2)
    dtype, mode = nl.float8_e4m3, nisa.matmul_perf_mode.double_row
    operands = tile(x, dtype=dtype), tile(y, dtype=dtype)
    result = issue(nisa.nc_matmul, bank((16, 40)), *operands, perf_mode=mode, chip="trn2").dst
    np.testing.assert_array_equal(result, np.einsum("kjm,kjn->mn", float64(x), float64(y)))


def convolution(x: Any, w: Any) -> Any:
    """A full 1-D convolution: each tap adds its product to a window of the bank, one further than the last."""
    taps, channels, width = w.shape[0], w.shape[2], x.shape[1]
    out = nl.ndarray((channels, width + taps - 1), dtype=nl.float32, buffer=nl.shared_hbm)
    x_tile = nl.load(x)
    sums = nl.ndarray(out.shape, dtype=nl.float32, buffer=nl.psum)
    for tap in range(taps):
        nisa.nc_matmul(sums[:, nl.ds(tap, width)], nl.load(w[tap]), x_tile)
    result = nl.ndarray(out.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(result, sums)
    nisa.dma_copy(out, result)
    return out


def test_products_in_overlapping_windows_of_a_bank_add_up() -> None:
    """What a window shares with the earlier ones accumulates, what is new is overwritten."""
    x, w = small_integers((8, 20), 1), small_integers((3, 8, 5), 2)
    expected = np.zeros((5, 22))
    for tap in range(3):
        expected[:, tap : tap + 20] += float64(w[tap]).T @ float64(x)
    np.testing.assert_array_equal(ran(convolution, x, w), expected)


def test_adding_to_an_unwritten_bank_is_reported() -> None:
    """``accumulate=True`` on PSUM without a value."""
    x = tile(np.ones((8, 8), np.float32))
    issued = issue(nisa.nc_matmul, bank((8, 8)), x, x, accumulate=True, rules="report")
    assert len(issued.rules) == 1
    assert issued.rules[0] in ("NK401", "NK503")


@pytest.mark.parametrize("wide", ["dst", "src"])
def test_a_predicated_copy_of_other_ranks(wide: str) -> None:
    """A 2-D source, a 4-D destination and predicate, and the other way round."""
    chosen = np.random.default_rng(1).integers(0, 2, (8, 2, 3, 4)).astype(np.uint8)
    x, y = small_integers((8, 24), 1), small_integers((8, 24), 2)
    shapes = [(8, 2, 3, 4), (8, 24)] if wide == "dst" else [(8, 24), (8, 2, 3, 4)]
    operands = tile(x.reshape(shapes[0])), tile(y.reshape(shapes[1])), tile(chosen.reshape(shapes[0]))
    result = issue(nisa.tensor_copy_predicated, *operands).dst
    np.testing.assert_array_equal(result.reshape(8, 24), np.where(chosen.reshape(8, 24), y, x))


def test_a_selection_of_other_ranks() -> None:
    """The destination and the predicate 4-D, what is chosen 2-D."""
    chosen = np.random.default_rng(1).integers(0, 2, (8, 2, 3, 4)).astype(np.uint8)
    x = small_integers((8, 24), 1)
    result = issue(nisa.select_reduce, empty((8, 2, 3, 4)), tile(chosen), tile(x), -7.0).dst
    np.testing.assert_array_equal(result.reshape(8, 24), np.where(chosen.reshape(8, 24), x, -7))


def test_the_lowest_float_is_a_python_float_too() -> None:
    """As the value of what is not chosen, of both selections."""
    x = small_integers((4, 6), 1)
    affine = issue(nisa.affine_select, empty((4, 6)), [[-1, 6]], 1, tile(x), LOWEST, cmp_op=nl.greater_equal)
    np.testing.assert_array_equal(affine.dst, np.where(np.tri(4, 6, dtype=bool), x, np.float32(LOWEST)))
    bounds = tile(np.full((4, 1), 2, np.float32)), tile(np.full((4, 1), 5, np.float32))
    ranged = issue(
        nisa.range_select,
        empty((4, 6)),
        tile(x),
        nl.greater_equal,
        nl.less,
        *bounds,
        reduce_res=empty((4, 1)),
        on_false_value=LOWEST,
    )
    np.testing.assert_array_equal(ranged.dst[:, 2:5], x[:, 2:5])
    assert set(ranged.dst[:, [0, 1, 5]].flat) == {np.float32(LOWEST)}


def test_a_chain_of_reductions_spills_at_its_end_only() -> None:
    """``reduce_res=None`` keeps the sum in the engine."""
    x = small_integers((4, 6), 1)

    def body() -> np.ndarray:
        data, out, sums = placed(tile(x)), placed(empty((4, 3))), placed(empty((4, 1)))
        command = nisa.reduce_cmd
        nisa.tensor_scalar_reduce(out, data[:, :3], nl.multiply, 2.0, nl.add, reduce_cmd=command.reset_reduce)
        nisa.tensor_scalar_reduce(out, data[:, 3:], nl.multiply, 2.0, nl.add, sums, reduce_cmd=command.reduce)
        return np.array(sums.array)

    np.testing.assert_array_equal(inside(body)[:, 0], 2 * float64(x).sum(axis=1))


def test_a_copy_of_words_is_exact() -> None:
    """nl.copy does not go through float32 where the dtypes are the same."""
    words = np.array([[2**31 - 1, 2**24 + 1, -(2**30) - 3]], np.int32)
    np.testing.assert_array_equal(inside(lambda: np.array(nl.copy(placed(tile(words))).array)), words)


@pytest.mark.parametrize("place", ["op0", "op1"])
def test_before_nki_0_7_tensor_scalar_takes_no_reciprocal(place: str) -> None:
    """NK306 in NKI 0.6, whose simulator expects a binary operator; NKI 0.7 computes it."""
    x = np.arange(1, 33, dtype=np.float32).reshape(4, 8)
    first = {"op0": nl.reciprocal, "operand0": 0.0}
    operators = first if place == "op0" else {"op0": nl.add, "operand0": 1.0, "op1": nl.reciprocal, "operand1": None}

    def kernel(given: Any) -> Any:
        out = nl.ndarray(given.shape, dtype=given.dtype, buffer=nl.shared_hbm)
        kept = nl.load(given)
        nisa.tensor_scalar(dst=kept, data=kept, **operators)
        nl.store(out, kept)
        return out

    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(kernel, x, nki_version="0.6")
    assert caught.value.finding.rule == "NK306"
    expected = 1 / (x.astype(np.float64) + (place == "op1"))
    np.testing.assert_allclose(nkitools.simulate(kernel, x, nki_version="0.7").outputs, expected, rtol=1e-6)


def test_before_nki_0_7_rms_norm_does_not_compile() -> None:
    """NK615 as an error in NKI 0.6, whose compiler refuses it; it is computed where errors are only reported."""
    x, w = (np.random.default_rng(seed).uniform(1, 2, (4, 8)).astype(np.float32) for seed in range(2))

    def kernel(given: Any, weights: Any) -> Any:
        out = nl.ndarray(given.shape, dtype=given.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.rms_norm(nl.load(given), nl.load(weights), axis=1, n=8))
        return out

    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(kernel, x, w, nki_version="0.6")
    assert (caught.value.finding.rule, caught.value.finding.severity) == ("NK615", "error")
    expected = x / np.sqrt((x.astype(np.float64) ** 2).mean(1, keepdims=True) + 1e-6) * w
    for options in ({"nki_version": "0.7"}, {"nki_version": "0.6", "rules": "report"}):
        np.testing.assert_allclose(nkitools.simulate(kernel, x, w, **options).outputs, expected, rtol=1e-5)
