"""What public kernels of the dialect do beyond the letter of the reference, and what stays refused there."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import neuronxcc.nki.compiler as ncc
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import neuronxcc.nki.typing as nt
import numpy as np
import pytest

from nkitools.issue import carry_out
from tests.dialects.legacy.running import outputs, random, refusal, run

X = random(128, 64)


def stored(make: Any, shape: tuple[int, ...] = (128, 64), dtype: Any = nl.float32) -> Any:
    """A kernel that stores what ``make`` makes of the loaded input."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(shape, dtype=dtype, buffer=nl.shared_hbm)
        nl.store(out, make(nl.load(x)))
        return out

    return kernel


# --- where accesses begin --------------------------------------------------------------------------------------------


def test_an_automatic_tile_may_be_accessed_anywhere() -> None:
    """The compiler places it: AWS's gather_flattened fills a tile element by element (no NK108)."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((8, 3), dtype=nl.int32, buffer=nl.shared_hbm)
        indices = nl.zeros((8, 3), dtype=nl.int32)
        for i in nl.static_range(8):
            for j in nl.static_range(3):
                indices[i, j] = 10 * i + j
        nl.store(out, indices)
        return out

    np.testing.assert_array_equal(outputs(kernel, X), 10 * np.arange(8)[:, None] + np.arange(3))


def test_where_the_author_places_a_tile_nk108_holds() -> None:
    """Also when an automatic tile of the very same layout has been accessed there before."""

    def kernel(buffer: Any) -> Any:
        def fill(x: Any) -> Any:
            out = nl.ndarray((8, 4), dtype=nl.float32, buffer=nl.shared_hbm)
            tile = nl.ndarray((8, 4), dtype=nl.float32, buffer=buffer)
            tile[...] = 0.0
            tile[1:3, :] = 1.0
            nl.store(out, tile)
            return out

        return fill

    assert run(kernel(nl.sbuf), X).outputs[:, 0].tolist() == [0, 1, 1, 0, 0, 0, 0, 0]
    finding = refusal(kernel(ncc.sbuf.mod_alloc(base_addr=0)), X)
    assert (finding.rule, "begins at partition 1;" in finding.message) == ("NK108", True)


@pytest.mark.fast_path
def test_plans_of_such_accesses_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second run takes the fast path."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
        tile = nl.load(x)
        for i in nl.static_range(5):
            tile[i, :] = 1.0
        nl.store(out, tile)
        return out

    run(kernel, X)
    careful: list[Any] = []
    perform = carry_out.perform
    monkeypatch.setattr(carry_out, "perform", lambda call: careful.append(call) or perform(call))
    run(kernel, X)
    assert careful == []


# --- slices under masks ----------------------------------------------------------------------------------------------


def test_a_slice_may_leave_the_tensor_where_a_mask_leaves_it_out() -> None:
    """AWS's adaptive pooling moves its last tile so, by nisa.dma_copy, nl.load and nl.store."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        rows = nl.arange(128)[:, None]
        for i in nl.affine_range(2):
            inside = i * 128 + rows < 200
            copied = nl.ndarray((128, 30), dtype=x.dtype)
            nisa.dma_copy(dst=copied, src=x[i * 128 : i * 128 + 128, 10:40], mask=inside)
            loaded = nl.load(x[nl.ds(i * 128, 128), :], mask=inside)
            loaded[:, 10:40] = nl.multiply(copied, 2.0, mask=inside)
            nl.store(out[i * 128 : i * 128 + 128], loaded, mask=inside)
        return out

    x = random(200, 50)
    expected = x.copy()
    expected[:, 10:40] *= 2
    np.testing.assert_array_equal(outputs(kernel, x), expected)


@pytest.mark.parametrize(
    ("key", "positions"),
    [
        (np.s_[100:150, 0:5], np.s_[100:128, 0:5]),
        (np.s_[0:128, 60:70], np.s_[0:128, 60:64]),
        (np.s_[..., 50:70], np.s_[:, 50:64]),
        (np.s_[0:128, 40:70:3], np.s_[0:128, 40:64:3]),
        (np.s_[-28:150, 0:5], np.s_[100:128, 0:5]),
    ],
)
def test_slices_beyond_have_numpys_elements_inside(key: Any, positions: Any) -> None:
    """Steps, ends counted from the end, and `...` among them."""
    expected = X[positions]

    def kernel(x: Any) -> Any:
        out = nl.ndarray(expected.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        part = x[key]
        i_p, i_f = nl.mgrid[0 : part.shape[0], 0 : part.shape[1]]
        inside = (i_p < expected.shape[0]) & (i_f < expected.shape[1])
        nl.store(out[i_p, i_f], nl.load(part, mask=inside), mask=inside)
        return out

    np.testing.assert_array_equal(outputs(kernel, X), expected)


@pytest.mark.parametrize(
    ("use", "text"),
    [
        (lambda x: nl.load(x[100:150, :]), "on dimension 0: index range [100, 149] exceed dimension size of 128"),
        (lambda x: nl.load(x)[:, 60:70] + 1.0, "on dimension 1: index range [60, 69] exceed dimension size of 64"),
        (lambda x: x[200, :], "on dimension 0: index range [200, 200] exceed dimension size of 128"),
        (lambda x: x[-200:100, :], "index -200:100 is out of bounds for dimension 0"),
    ],
)
def test_without_a_mask_it_is_refused(use: Any, text: str) -> None:
    """NK402, in AWS's words; an integer index at once."""
    finding = refusal(lambda x: use(x), X)
    assert (finding.rule, text in finding.message) == ("NK402", True), finding.message


def test_a_masked_value_is_assigned_to_what_reaches_beyond() -> None:
    """Only what the mask left needs to lie inside, of a box and of a predicate."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((16, 20), dtype=x.dtype, buffer=nl.shared_hbm)
        tile, other = nl.zeros((16, 20), dtype=x.dtype), nl.zeros((16, 20), dtype=x.dtype)
        loaded = nl.load(x)
        i_p, i_f = nl.mgrid[0:16, 0:12]
        tile[i_p, i_f + 12] = nl.copy(loaded[i_p, i_f], mask=i_f < 8)
        i_p, i_a, i_b = nl.mgrid[0:16, 0:3, 0:6]
        other[i_p, 8 * i_a + i_b] = nl.multiply(loaded[i_p, 6 * i_a + i_b], 10.0, mask=8 * i_a + i_b < 20)
        nl.store(out, nl.add(tile, other))
        return out

    x = random(16, 18)
    expected = np.zeros((16, 20), np.float32)
    expected[:, 12:] = x[:, :8]
    for a, b in np.ndindex(3, 6):
        if 8 * a + b < 20:
            expected[:, 8 * a + b] += np.float32(10) * x[:, 6 * a + b]
    np.testing.assert_array_equal(outputs(kernel, x), expected)


# --- instructions ----------------------------------------------------------------------------------------------------


def test_a_quotient_of_integers_is_a_float() -> None:
    """AWS's resize_nearest rounds it with nl.floor; with ``dtype`` it is that."""
    numbers = np.arange(128 * 64, dtype=np.int32).reshape(128, 64)
    quotient = numbers / np.float32(38)
    np.testing.assert_allclose(outputs(stored(lambda t: t / 38), numbers), quotient, rtol=1e-6)
    np.testing.assert_allclose(outputs(stored(lambda t: nl.divide(t, 38)), numbers), quotient, rtol=1e-6)
    floor = stored(lambda t: nl.floor(t / 38, dtype=nl.int32), dtype=nl.int32)
    np.testing.assert_array_equal(outputs(floor, numbers), numbers // 38)
    whole = stored(lambda t: nl.divide(t, 38, dtype=nl.int32), dtype=nl.int32)
    np.testing.assert_array_equal(outputs(whole, numbers), np.rint(quotient))


def test_affine_select_takes_a_tile_from_psum() -> None:
    """The GpSimd Engine does not reach PSUM: the compiler copies the tile. AWS's attention selects from a product."""
    i_p, i_f = nl.mgrid[0:64, 0:64]

    def kernel(x: Any) -> Any:
        out = nl.ndarray((64, 64), dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x)
        product = nl.zeros((64, 64), dtype=nl.float32, buffer=nl.psum)
        product += nisa.nc_matmul(tile, tile)
        nl.store(out, nisa.affine_select(pred=(i_f <= i_p), on_true_tile=product[i_p, i_f], on_false_value=-5.0))
        return out

    expected = np.where(np.tri(64, dtype=bool), X.T @ X, np.float32(-5))
    np.testing.assert_allclose(outputs(kernel, X), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("swapped", [False, True])
def test_tensor_tensor_broadcasts_free_dimensions(swapped: bool) -> None:
    """Of size 1, in either operand, and under a mask: AWS's double_row_matmul scales columns so."""

    def make(tile: Any) -> Any:
        column = nl.max(tile, axis=1, keepdims=True)
        operands = (column, tile) if swapped else (tile, column)
        result = nl.zeros((128, 64), dtype=nl.float32)
        result[...] = nisa.tensor_tensor(*operands, nl.subtract, mask=nl.arange(64)[None, :] < 40)
        return result

    largest = X.max(axis=1, keepdims=True)
    expected = np.where(np.arange(64) < 40, largest - X if swapped else X - largest, 0)
    np.testing.assert_array_equal(outputs(stored(make), X), expected)


def test_tensor_tensor_broadcasts_nothing_else() -> None:
    """Other numbers of elements (NK109) and of partitions (NK102) stay refused."""
    assert refusal(stored(lambda t: nisa.tensor_tensor(t, t[:, 0:32], nl.add)), X).rule == "NK109"
    assert refusal(stored(lambda t: nisa.tensor_tensor(t, t[0:64, :], nl.add)), X).rule == "NK102"


def test_match_replace_keeps_what_its_mask_leaves_out() -> None:
    """ "A mask is applied to the data tensor": the rest of the modified tensor is there as it was."""

    def make(tile: Any) -> Any:
        i_p, i_f = nl.mgrid[0:128, 0:64]
        inside = (i_p < 40) & (i_f < 32)
        largest = nisa.max8(src=tile[i_p, i_f], mask=inside)
        return nisa.nc_match_replace8(data=tile[i_p, i_f], vals=largest, imm=9.0, mask=inside)

    expected = X.copy()
    for row in expected[:40]:
        row[np.argsort(-row[:32])[:8]] = 9
    np.testing.assert_array_equal(outputs(stored(make), X), expected)


def test_a_loop_runs_as_often_as_a_scalar_says() -> None:
    """AWS's paged attention loops over range(scalar(tile)); a scalar is no integer where one must be known."""

    def kernel(x: Any, count: Any) -> Any:
        out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
        total = nl.zeros((128, 64), dtype=x.dtype)
        tile = nl.load(x)
        for _ in range(nt.scalar(nl.load(count))):
            total += tile
        nl.store(out, total)
        return out

    np.testing.assert_array_equal(outputs(kernel, X, np.array([[3]], np.int32)), X + X + X)

    def shaped(x: Any, count: Any) -> Any:
        return nl.zeros((nt.scalar(nl.load(count)), 4), dtype=nl.float32)

    assert refusal(shaped, X, np.array([[3]], np.int32)).rule == "NK609"


# --- tensors and modules ---------------------------------------------------------------------------------------------


def test_tiles_of_block_dimensions_are_reinterpreted() -> None:
    """``tensor.view(dtype)[block, rows, columns]``."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((2, 128, 128), dtype=nl.uint16, buffer=nl.shared_hbm)
        tiles = nl.ndarray((2, nl.par_dim(128), 64), dtype=x.dtype)
        for i in nl.static_range(2):
            tiles[i] = nl.multiply(nl.load(x), i + 1.0)
            nl.store(out[i], tiles.view(nl.uint16)[i, 0:128, 0:128])
        return out

    done = run(kernel, X)
    assert {finding.rule for finding in done.findings} == {"NK612"}
    np.testing.assert_array_equal(done.outputs, np.stack([X, 2 * X]).view(np.uint16))


@pytest.mark.parametrize(("module", "name"), [("tensor", "local_tile"), ("indexing", "TileIndex")])
def test_classes_that_public_kernels_annotate_with(module: str, name: str) -> None:
    """From AWS's own modules, where other names are refused (NK607)."""
    found = import_module(f"neuronxcc.nki.compiler.backends.neuron.{module}")
    assert isinstance(getattr(found, name), type)
    with pytest.raises(AttributeError, match="NK607"):
        found.anything_else  # noqa: B018
