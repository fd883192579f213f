"""The corrections that AWS's release notes list for its own simulator (NKI 0.4 and 0.5), each held here as well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from tests.isa.issued import Tile, bank, empty, inside, issue, placed, tile
from tests.isa.oracles import float64, small_integers
from tests.nki_versions import WITH_REMOVED_NAMES


def ran(kernel: Any, *arrays: Any, rules_found: tuple[str, ...] = (), **kwargs: Any) -> Any:
    """Return what a kernel returns; it has these findings only."""
    run = nkitools.simulate(kernel, *arrays, **kwargs)
    assert tuple(finding.rule for finding in run.findings) == rules_found
    return run.outputs


# --- NKI 0.5 ---------------------------------------------------------------------------------------------------------


def test_packed_rows_that_are_out_of_bounds_are_skipped() -> None:
    """``oob_mode.skip`` of an x4 dtype: the rows in bounds arrive bit by bit, the others stay."""
    dtype = nl.float8_e4m3fn_x4
    rows = np.arange(24, dtype=np.uint32).reshape(4, 6)
    indices = np.array([[3], [9], [0], [4]], np.uint32)

    def kernel(source: Any, index: Any) -> Any:
        out = nl.ndarray((4, 6), dtype=nl.uint32, buffer=nl.shared_hbm)
        taken = nl.ndarray((4, 6), dtype=dtype, buffer=nl.sbuf)
        nisa.memset(taken, 0)
        picked = source.view(dtype).ap(pattern=[[6, 4], [1, 6]], vector_offset=nl.load(index), indirect_dim=0)
        nisa.dma_copy(dst=taken, src=picked, oob_mode=nisa.oob_mode.skip)
        nisa.dma_copy(dst=out, src=taken.view(nl.uint32))
        return out

    expected = np.zeros_like(rows)
    expected[0], expected[2] = rows[3], rows[0]
    np.testing.assert_array_equal(ran(kernel, rows, indices, chip="trn3"), expected)


def test_products_of_windows_of_an_image() -> None:
    """Operands of more than two dimensions, as a convolution over an image takes them (NKI 0.4 and 0.5)."""
    image, w = small_integers((6, 8, 8), 1), small_integers((6, 2, 5), 2)
    moving = tile(image, view=lambda t: t[:, 2:5, 1:7:2])
    expected = np.einsum("kam,khw->amhw", float64(w), float64(image[:, 2:5, 1:7:2]))
    result = issue(nisa.nc_matmul, bank((10, 3, 3)), tile(w), moving).dst
    np.testing.assert_array_equal(result, expected.reshape(10, 3, 3))


@WITH_REMOVED_NAMES
def test_a_while_loop_ends_when_its_register_is_zero() -> None:
    """Both forms of it; the first one is deprecated."""

    def counted(count: Any) -> Any:
        left, one, turns = nl.load(count), nl.ones((1, 1), nl.int32), nl.zeros((1, 2), nl.int32)
        register = nisa.register_alloc()
        nisa.register_load(register, left)
        while register:
            nisa.tensor_tensor(turns[:, 0:1], turns[:, 0:1], one, nl.add)
            nisa.tensor_tensor(left, left, one, nl.subtract)
            nisa.register_load(register, left)

        def body(condition: Any) -> Any:
            nisa.tensor_tensor(turns[:, 1:2], turns[:, 1:2], one, nl.add)
            nisa.tensor_tensor(left, left, one, nl.subtract)
            nisa.register_load(condition, left)
            return condition

        nisa.tensor_copy(left, nl.load(count))
        nisa.register_load(register, left)
        nl.while_loop(register, body)
        out = nl.ndarray((1, 2), dtype=nl.int32, buffer=nl.shared_hbm)
        nisa.dma_copy(out, turns)
        return out

    assert ran(counted, np.array([[5]], np.int32), rules_found=("NK618",)).tolist() == [[5, 5]]


def test_a_gathering_transpose_leaves_the_columns_of_rows_out_of_bounds() -> None:
    """They keep what the destination held."""
    rows = small_integers((20, 16), 1).astype(nl.bfloat16.dtype)
    indices = np.arange(16, dtype=np.uint32)[:, None]
    indices[[2, 5], 0] = 20, 2**31

    def kernel(source: Any, index: Any) -> Any:
        out = nl.ndarray((16, 16), dtype=source.dtype, buffer=nl.shared_hbm)
        taken = nl.ndarray((16, 16), dtype=source.dtype, buffer=nl.sbuf)
        nisa.memset(taken, 9.0)
        picked = source.ap(pattern=[[16, 16], [1, 16]], vector_offset=nl.load(index), indirect_dim=0)
        nisa.dma_transpose(dst=taken, src=picked, axes=(1, 0), oob_mode=nisa.oob_mode.skip)
        nisa.dma_copy(dst=out, src=taken)
        return out

    expected = rows[:16].T.copy()
    expected[:, [2, 5]] = 9
    np.testing.assert_array_equal(float64(ran(kernel, rows, indices)), float64(expected))


def test_rsqrt_runs_on_the_gpsimd_engine() -> None:
    """And so takes no tile in PSUM."""
    x = np.array([[4, 0.25, 1e-30, 3]], np.float32)

    def kernel(memory: str) -> None:
        nl.rsqrt(placed(tile(x, memory)))

    run = nkitools.simulate(lambda: kernel("sbuf"))
    assert run.instructions[-1].engine == "gpsimd"
    result = inside(lambda: np.array(nl.rsqrt(placed(tile(x))).array))
    np.testing.assert_allclose(result, 1 / np.sqrt(float64(x)), rtol=1e-6)
    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(lambda: kernel("psum"))
    assert caught.value.finding.rule == "NK206"


def test_a_reshape_keeps_the_number_of_elements() -> None:
    """Another number is refused at the call."""
    with pytest.raises(nkitools.KernelError) as caught:
        inside(lambda: placed(empty((8, 6))).reshape((8, 7)))
    assert caught.value.finding.rule == "NK109"


# --- NKI 0.4 ---------------------------------------------------------------------------------------------------------


def test_integers_pass_a_skipping_copy_as_they_are() -> None:
    """Words beyond what float32 holds, in the rows that are in bounds."""
    rows = np.array([[2**31 - 1, 2**24 + 1], [-(2**31) + 1, 7]], np.int32)
    indices = np.array([[1], [5], [0]], np.uint32)

    def kernel(source: Any, index: Any) -> Any:
        out = nl.ndarray((3, 2), dtype=nl.int32, buffer=nl.shared_hbm)
        taken = nl.full((3, 2), 2**25 + 1, nl.int32)
        picked = source.ap(pattern=[[2, 3], [1, 2]], vector_offset=nl.load(index), indirect_dim=0)
        nisa.dma_copy(dst=taken, src=picked, oob_mode=nisa.oob_mode.skip)
        nisa.dma_copy(dst=out, src=taken)
        return out

    assert ran(kernel, rows, indices).tolist() == [rows[1].tolist(), [2**25 + 1] * 2, rows[0].tolist()]


def test_a_shuffle_leaves_the_partitions_of_255() -> None:
    """They keep what the destination held."""
    x, y = small_integers((32, 4), 1), small_integers((32, 4), 2)
    mask = [255 if p % 2 else 31 - p for p in range(32)]
    result = issue(nisa.nc_stream_shuffle, tile(y), tile(x), mask).dst
    expected = np.where(np.arange(32)[:, None] % 2 == 1, y, x[::-1])
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("form", ["slice", "ap"])
def test_a_local_gather_into_a_part_of_a_tile(form: str) -> None:
    """Each core of 16 partitions has its own list of indices, partition first."""
    x = small_integers((32, 10), 1)
    index = np.random.default_rng(2).integers(0, 10, (32, 2)).astype(np.uint16)
    views = {"slice": lambda t: t[:, 8:40], "ap": lambda t: t.ap([[48, 32], [1, 32]], offset=8)}
    target = Tile((32, 48), np.zeros((32, 48), np.float32), nl.float32, "sbuf", views[form])
    issued = issue(nisa.local_gather, target, tile(x), tile(index))
    for core in range(2):
        own = slice(16 * core, 16 * core + 16)
        np.testing.assert_array_equal(issued.dst[own], x[own][:, index[own].T.flatten()])
    assert not issued.storages["dst"][:, :8].any()
    assert not issued.storages["dst"][:, 40:].any()


@pytest.mark.parametrize("start", [0, 3, -7])
def test_a_pattern_may_begin_at_a_register(start: int) -> None:
    """The offset of iota, whose value counts when the instruction runs."""

    def body() -> list[np.ndarray]:
        register, results = nisa.register_alloc(start), []
        for _ in range(2):
            results.append(placed(empty((4, 6), nl.int32)))
            nisa.iota(results[-1], [[1, 6]], offset=register, channel_multiplier=10)
            nisa.register_move(register, start + 100)
        return [np.array(each.array) for each in results]

    first, second = inside(body)
    np.testing.assert_array_equal(first, start + 10 * np.arange(4)[:, None] + np.arange(6))
    np.testing.assert_array_equal(second, first + 100)


@pytest.mark.parametrize("dtype", [nl.float8_e4m3fn_x4, nl.float8_e5m2_x4], ids=str)
def test_packed_elements_keep_their_bits(dtype: Any) -> None:
    """Loaded, copied and stored on NeuronCore-v4."""
    words = np.random.default_rng(1).integers(0, 2**32, (8, 6), dtype=np.uint32)

    def kernel(source: Any) -> Any:
        out = nl.ndarray((8, 6), dtype=nl.uint32, buffer=nl.shared_hbm)
        first, second = nl.ndarray((8, 6), dtype, nl.sbuf), nl.ndarray((8, 6), dtype, nl.sbuf)
        nisa.dma_copy(first, source.view(dtype))
        nisa.tensor_copy(second, first)
        nisa.dma_copy(out.view(dtype), second)
        return out

    np.testing.assert_array_equal(ran(kernel, words, chip="trn3"), words)


def test_a_dma_scales_nothing() -> None:
    """dma_compute adds; scales other than 1 are refused."""
    x = small_integers((8, 6), 1)

    def total(scale: float) -> np.ndarray:
        out, source = placed(empty((8, 6))), placed(tile(x))
        nisa.dma_compute(out, [source, source], nl.add, scales=[scale, 1.0])
        return np.array(out.array)

    np.testing.assert_array_equal(inside(lambda: total(1.0)), 2 * x)
    with pytest.raises(nkitools.KernelError) as caught:
        inside(lambda: total(2.0))
    assert caught.value.finding.rule == "NK609"


def test_logical_and() -> None:
    """1 where both are not 0."""
    x, y = np.array([[0, 0, 2, 3]], np.float32), np.array([[0, 5, 0, -1]], np.float32)
    assert inside(lambda: nl.logical_and(placed(tile(x)), placed(tile(y))).array.tolist()) == [[0, 0, 0, 1]]


@WITH_REMOVED_NAMES
def test_a_loops_counter_cannot_be_written() -> None:
    """It is a frozen register."""

    def body() -> None:
        for counter in nl.dynamic_range(2):
            nisa.register_move(counter, 5)

    with pytest.raises(nkitools.KernelError) as caught:
        inside(body)
    assert caught.value.finding.rule == "NK601"


@pytest.mark.parametrize("engine", ["tensor", "vector"])
def test_a_transpose_runs_on_the_engine_that_is_asked_for(engine: str) -> None:
    """And is recorded there."""
    dst = bank((32, 32)) if engine == "tensor" else empty((32, 32))
    x = small_integers((32, 32), 1)
    issued = issue(nisa.nc_transpose, dst, tile(x), engine=getattr(nisa.engine, engine))
    np.testing.assert_array_equal(issued.dst, x.T)
    assert issued.instruction.engine == engine


def test_a_tensor_of_one_dimension_is_printed() -> None:
    """device_print takes an HBM tensor of any rank."""

    def kernel(x: Any) -> None:
        nl.device_print("x", x)

    (printed,) = nkitools.simulate(kernel, np.arange(5, dtype=np.float32)).prints
    assert printed.value.tolist() == [0, 1, 2, 3, 4]


@dataclass(frozen=True)
class Settings(nl.NKIObject):
    """A kernel's settings."""

    rows: int
    scale: float = 2.0


def test_frozen_settings_and_none_are_arguments() -> None:
    """A frozen dataclass of NKIObject can be made and passed, and so can None."""

    def kernel(x: Any, settings: Any, bias: Any = None) -> Any:
        out = nl.ndarray((settings.rows, x.shape[1]), dtype=x.dtype, buffer=nl.shared_hbm)
        scaled = nl.multiply(nl.load(x[: settings.rows]), settings.scale)
        nl.store(out, scaled if bias is None else nl.add(scaled, bias))
        return out

    x = small_integers((8, 6), 1)
    np.testing.assert_array_equal(ran(kernel, x, Settings(rows=4), None, rules_found=("NK513",)), 2 * x[:4])


def test_bool_results_stay_bool() -> None:
    """They are not returned as uint8."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=nl.bool_, buffer=nl.shared_hbm)
        nl.store(out, nl.greater(nl.load(x), 0.0, dtype=nl.bool_))
        return out

    x = small_integers((4, 6), 1)
    result = ran(kernel, x)
    assert result.dtype == np.bool_
    np.testing.assert_array_equal(result, x > 0)


def test_narrow_floats_are_rounded_as_declared() -> None:
    """A bfloat16 tile holds bfloat16 values (NKI_PRECISE_FP=1, the default since 0.4)."""
    x = np.array([[1 + 2.0**-9, 257, 3.14159]], np.float32)
    result = issue(nisa.tensor_copy, empty((1, 3), nl.bfloat16), tile(x)).dst
    np.testing.assert_array_equal(float64(result), [[1, 256, 3.140625]])


@pytest.mark.parametrize("first", [-3, 0, 5])
def test_an_affine_selection_may_begin_at_a_register(first: int) -> None:
    """0.4: ``affine_select`` takes a register as offset."""
    x = np.arange(1, 33, dtype=np.float32).reshape(4, 8)

    def kernel(source: Any) -> Any:
        out = nl.ndarray(source.shape, nl.float32, buffer=nl.shared_hbm)
        tile = nl.load(source)
        nisa.affine_select(
            dst=tile,
            pattern=[[-1, 8]],
            channel_multiplier=1,
            on_true_tile=tile,
            on_false_value=-1.0,
            cmp_op=nl.greater_equal,
            offset=nisa.register_alloc(first),
        )
        nl.store(out, tile)
        return out

    rows, columns = np.mgrid[0:4, 0:8]
    expected = np.where(first + rows - columns >= 0, x, -1)
    np.testing.assert_array_equal(nkitools.simulate(kernel, x).outputs, expected)
