"""Direct allocation: where tiles lie, what may not be allocated so, and tensors that overwrite each other."""

from __future__ import annotations

import functools
from typing import Any

import neuronxcc.nki as nki
import neuronxcc.nki.compiler as ncc
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nkitools.dialects.legacy.aws_names.allocation import modulo
from tests.dialects.legacy.errors import marked_line, run
from tests.dialects.legacy.running import random, refusal

X = random(128, 64)


def placed(buffer: Any, shape: tuple[Any, ...] = (nl.par_dim(128), 64), dtype: Any = np.float32) -> list[Any]:
    """(partition, byte) of the tiles of a tensor that is created so, in the order of its blocks."""
    found: list[Any] = []

    def kernel(x: Any, out: Any) -> None:
        tensor = nl.ndarray(shape, dtype=dtype, buffer=buffer)
        tiles = getattr(tensor, "blocks", [tensor.base])
        found.extend((tile.storage.start_partition, tile.storage.start_byte) for tile in tiles)
        nl.store(out, 0.0)

    run(nki.trace(kernel), (X, np.zeros_like(X)), "off")
    return found


# --- places ----------------------------------------------------------------------------------------------------------


def test_alloc_asks_the_function_for_each_block() -> None:
    """It gets the block's index, the partitions and the bytes of a partition; SBUF tiles go where it says."""
    asked: list[Any] = []

    def place(idx: Any, pdim_size: Any, fdim_size: Any) -> Any:
        asked.append((idx, pdim_size, fdim_size))
        return 32 * idx[0], 4096 + idx[1] * fdim_size

    shape = (2, 3, nl.par_dim(32), 4, 16)
    assert placed(ncc.sbuf.alloc(place), shape, nl.bfloat16) == [
        (32 * i, 4096 + 128 * j) for i in range(2) for j in range(3)
    ]
    assert asked == [((i, j), 32, 128) for i in range(2) for j in range(3)]
    bound = functools.partial(_by_name, table={(0,): 512, (1,): 0})
    assert placed(ncc.sbuf.alloc(bound), (2, nl.par_dim(128), 64)) == [(0, 512), (0, 0)]


def _by_name(table: Any, idx: Any, pdim_size: int, fdim_size: int) -> Any:
    return 0, table[idx]


def test_modulo_allocation_in_sbuf() -> None:
    """The table of AWS's guide: logical tiles share physical ones in turn, 1024 bytes apart."""
    shape = (4, nl.par_dim(128), 512)
    assert placed(ncc.sbuf.mod_alloc(base_addr=0, num_free_tiles=(2,)), shape, nl.bfloat16) == [
        (0, 0),
        (0, 1024),
        (0, 0),
        (0, 1024),
    ]
    along = ncc.sbuf.mod_alloc(base_addr=256, base_partition=32, num_par_tiles=(2,), num_free_tiles=(1,))
    assert placed(along, (4, nl.par_dim(32), 8)) == [(32, 256), (64, 256), (32, 256), (64, 256)]
    assert placed(ncc.sbuf.mod_alloc(base_addr=64)) == [(0, 64)]
    assert placed(ncc.sbuf.mod_alloc(base_addr=64, num_free_tiles=(8,))) == [(0, 64)]  # no blocks, nothing to share


def test_modulo_allocation_in_psum() -> None:
    """Tiles go round the banks of 2 KiB."""
    shape = (2, 4, nl.par_dim(128), 128)
    banks = ncc.psum.mod_alloc(base_bank=1, num_bank_tiles=(1, 3))
    assert placed(banks, shape) == [(0, 2048 * bank) for bank in (1, 2, 3, 1, 1, 2, 3, 1)]
    assert placed(ncc.psum.alloc(lambda idx, pdim_size, fdim_size: (5, 0, 0))) == [(0, 5 * 2048)]


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 4)), min_size=1, max_size=3),
    st.integers(0, 4096),
    st.integers(1, 2048),
)
def test_modulo_is_row_major_over_the_physical_tiles(dims: list[tuple[int, int]], base: int, step: int) -> None:
    """As NumPy numbers the elements of an array of the physical tiles."""
    blocks, tiles = zip(*dims, strict=True)
    numbers = np.arange(int(np.prod(tiles))).reshape(tiles)
    for block in np.ndindex(*blocks):
        number = numbers[tuple(index % count for index, count in zip(block, tiles, strict=True))]
        assert modulo(base, tiles, block, step) == base + number * step
        assert modulo(base, (), block, step) == base


@pytest.mark.parametrize(
    ("buffer", "shape", "rule"),
    [
        (lambda: ncc.sbuf.alloc(lambda i, p, f: (32, 0)), (65, 8), "NK108"),
        (lambda: ncc.sbuf.alloc(lambda i, p, f: (32, 0)), (64, 8), "NK108"),
        (lambda: ncc.sbuf.alloc(lambda i, p, f: (16, 0)), (32, 8), "NK108"),
        (lambda: ncc.sbuf.mod_alloc(base_addr=208 * 1024), (128, 8), "NK402"),
        (lambda: ncc.sbuf.mod_alloc(base_addr=-4), (128, 8), "NK402"),
        (lambda: ncc.sbuf.mod_alloc(base_addr=200 * 1024), (128, 8192), "NK402"),
        (lambda: ncc.sbuf.mod_alloc(base_addr=2), (128, 8), "NK207"),
        (lambda: ncc.sbuf.mod_alloc(base_addr=1.5), (128, 8), "NK609"),
        (lambda: ncc.sbuf.mod_alloc(base_addr=0, num_free_tiles=2), (128, 8), "NK609"),
        (lambda: ncc.sbuf.mod_alloc(base_addr=0, num_free_tiles=(2, 2)), (2, nl.par_dim(32), 8), "NK614"),
        (lambda: ncc.sbuf.alloc(lambda i, p, f: 0), (128, 8), "NK614"),
        (lambda: ncc.sbuf.alloc(3), (128, 8), "NK609"),
        (lambda: ncc.psum.mod_alloc(base_bank=8), (128, 8), "NK402"),
        (lambda: ncc.psum.mod_alloc(base_bank=0, base_addr=16), (128, 8), "NK614"),
        (lambda: ncc.psum.mod_alloc(base_bank=0, base_partition=32), (32, 8), "NK614"),
        (lambda: ncc.psum.mod_alloc(base_bank=0, num_free_tiles=(2,)), (2, nl.par_dim(32), 8), "NK614"),
        (lambda: ncc.psum.mod_alloc(base_bank=0), (128, 513), "NK106"),
        (lambda: ncc.psum.alloc(lambda i, p, f: (0, 32, 0)), (32, 8), "NK614"),
        (lambda: ncc.psum.alloc(lambda i, p, f: (0, 0)), (32, 8), "NK614"),
    ],
)
def test_places_that_are_none(buffer: Any, shape: Any, rule: str) -> None:
    """Start partitions, addresses, banks and the numbers of tiles have their limits."""

    def kernel(x: Any) -> Any:
        nl.ndarray(shape, dtype=np.float32, buffer=buffer())

    found = refusal(kernel, X, chip="trn2")
    assert found.rule == rule
    assert found.line in (kernel.__code__.co_firstlineno + 1, buffer.__code__.co_firstlineno)


def test_addresses_decided_in_a_loop_are_decided_once() -> None:
    """AWS traces the body of a loop once, so that counting an address up in it gives one address; static_range not."""
    found: list[int] = []
    ranges: Any = nl.affine_range

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        address = 0
        for i in ranges(2):
            for j in nl.sequential_range(2):
                tile = nl.ndarray((128, 16), dtype=x.dtype, buffer=ncc.sbuf.mod_alloc(base_addr=address))
                found.append(tile.base.storage.start_byte)
                address += 64
                columns = nl.ds(32 * i + 16 * j, 16)
                tile[...] = nl.load(x[:, columns])
                nl.store(out[:, columns], tile)
        return out

    np.testing.assert_array_equal(run(kernel, (X,)).outputs, X)
    assert found == [0, 0, 0, 0]
    found.clear()
    ranges = nl.static_range
    np.testing.assert_array_equal(run(kernel, (X,)).outputs, X)
    assert found == [0, 0, 64, 64]


def _sbuf(address: int, *shape: int, dtype: Any = np.float32) -> Any:
    return nl.ndarray(shape or (128, 64), dtype=dtype, buffer=ncc.sbuf.mod_alloc(base_addr=address))


def _kernel(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(x))
    return out


# --- overlapping lifetimes -------------------------------------------------------------------------------------------


def overwritten(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    first, second = _sbuf(0), _sbuf(128)
    first[...] = nl.load(x)
    second[...] = nl.copy(first)
    first[...] = nl.multiply(first, 2.0)  # here
    nl.store(out, first)
    return out


def test_a_tensor_overwritten_by_another_is_named_with_it() -> None:
    """NK204: both tensors, their addresses, and the line that overwrote; the same in every run."""
    for _ in range(2):
        found = run(overwritten, (X,)).findings
        assert [(each.rule, each.line) for each in found] == [("NK204", marked_line(overwritten))]
        message = found[0].message
        line = marked_line(overwritten) - 1
        assert "`first` (SBUF, float32 [128, 64]) is read at partitions 0..127, bytes 0..255 of SBUF" in message
        assert "`second` (SBUF, float32 [128, 64]) at partitions 0..127, bytes 128..383 of SBUF" in message
        assert f"has overwritten it in line {line}; the first byte lost is 128 of partition 0" in message


def test_bytes_are_used_again_one_tensor_after_the_other() -> None:
    """No lifetimes overlap where each tensor is read before the next one is written."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        for i in nl.sequential_range(4):
            for address in (0, 32):
                tile = _sbuf(address, 128, 16)
                tile[...] = nl.load(x[:, nl.ds(16 * i, 16)])
                nl.store(out[:, nl.ds(16 * i, 16)], tile)
        return out

    done = run(kernel, (X,))
    assert {each.rule for each in done.findings} <= {"NK506"}  # both tiles are stored into the same columns
    np.testing.assert_array_equal(done.outputs, X)


@pytest.mark.parametrize("count", [1, 2, 4, 8])
def test_two_physical_tiles_hold_no_four_logical_ones(count: int) -> None:
    """The guide's example: all tiles are loaded, then all are read; they must have as many physical tiles."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        buffer = ncc.sbuf.mod_alloc(base_addr=0, num_free_tiles=(count,))
        tiles = nl.ndarray((8, nl.par_dim(128), 8), dtype=x.dtype, buffer=buffer)
        for i in nl.affine_range(8):
            tiles[i] = nl.load(x[:, nl.ds(8 * i, 8)])
        for i in nl.affine_range(8):
            nl.store(out[:, nl.ds(8 * i, 8)], tiles[i])  # here
        return out

    findings = [each for each in run(kernel, (X,)).findings if each.rule != "NK612"]
    assert [(each.rule, each.count) for each in findings] == ([("NK204", 8 - count)] if count < 8 else [])
    assert all(each.line == marked_line(kernel) for each in findings)
    fixed = run(ncc.force_auto_alloc(nki.jit(kernel)), (X,))
    np.testing.assert_array_equal(fixed.outputs, X)


def test_accumulation_in_a_bank_that_another_tile_has_taken() -> None:
    """NK204: the partial sum is gone; a fresh logical tile of the same bank begins anew."""

    def kernel(x: Any, tiles: int) -> Any:
        out = nl.ndarray((2, 64, 64), dtype=x.dtype, buffer=nl.shared_hbm)
        data, result = _sbuf(0), _sbuf(4096, 64, 64)
        buffer = ncc.psum.mod_alloc(base_bank=0, num_bank_tiles=(tiles,))
        sums = nl.ndarray((2, nl.par_dim(64), 64), dtype=x.dtype, buffer=buffer)
        data[...] = nl.load(x)
        for _ in nl.affine_range(2):
            for i in nl.affine_range(2):
                sums[i] += nisa.nc_matmul(data, data)
        for i in nl.sequential_range(2):
            result[...] = nl.copy(sums[i])
            nl.store(out[i], result)
        return out

    def good(x: Any) -> Any:
        return kernel(x, 2)

    def bad(x: Any) -> Any:
        return kernel(x, 1)

    flags = {"experimental_flags": "skip-non-top-level-shared-hbm-check"}
    good_run = run(nki.jit(good, **flags), (X,))
    assert [each.rule for each in good_run.findings if each.severity == "error"] == []
    np.testing.assert_allclose(good_run.outputs[0], 2 * (X.T @ X), rtol=1e-5, atol=1e-4)
    assert "NK204" in [each.rule for each in run(nki.jit(bad, **flags), (X,)).findings]


def test_directives_and_switches_have_their_forms() -> None:
    """multi_buffer takes a number of buffers; what is documented in one line only is refused by name."""
    assert ncc.multi_buffer().factor == 2
    for wrong in (lambda: ncc.multi_buffer(0), lambda: ncc.enable_stack_allocator(nki.jit(_kernel), log_level="x")):
        with pytest.raises(Exception, match="NK609"):
            wrong()
    with pytest.raises(Exception, match="NK607"):
        ncc.allocation_scope()
