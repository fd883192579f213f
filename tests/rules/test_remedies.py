"""One rule has several remedies: the one that fits what the kernel has done is given."""

from __future__ import annotations

from typing import Any

import neuronxcc.nki as legacy_nki
import neuronxcc.nki.language as legacy_nl
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest
from nki.collectives import collective_permute

import nkitools
from nkitools.rules.catalogue import RULES
from tests.cases import each

X = np.ones((128, 64), np.float32)
WIDE = np.ones((256, 64), np.float32)


def remedy(rule: str, kernel: Any, *arguments: Any, **options: Any) -> str:
    """Return the remedy of the first finding of a rule."""
    run = nkitools.simulate(kernel, *arguments, rules="report", **options)
    return next(finding.remedy for finding in run.findings if finding.rule == rule)


def stored(rows: slice, columns: slice = slice(0, 64), *, height: int = 256) -> Any:
    """Return a kernel that stores ones into a part of its output."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((height, 64), nl.float32, buffer=nl.shared_hbm)
        tile = nl.ndarray((128, 64), nl.float32)
        nisa.memset(tile, 1.0)
        part = tile[0 : rows.stop - rows.start, columns]
        nisa.dma_copy(out[rows, columns], part)
        return out

    return kernel


def nothing(x: Any) -> Any:
    return nl.ndarray((256, 64), nl.float32, buffer=nl.shared_hbm)


@pytest.mark.parametrize(
    ("kernel", "says"),
    [
        (nothing, "Nothing writes to it"),
        (stored(slice(0, 128), height=200), RULES["NK403"].remedy),
        (stored(slice(128, 256)), "A whole block is left out"),
        (stored(slice(0, 100), slice(8, 40)), "The stores leave gaps"),
    ],
    ids=["nothing", "last tile", "first block", "gaps"],
)
def test_an_output_says_by_its_shape_what_is_missing(kernel: Any, says: str) -> None:
    """Never stored at all, the last tile, a block of its own, a pattern."""
    assert remedy("NK403", kernel, X).startswith(says)


def test_a_ring_that_is_read_a_slot_ahead() -> None:
    """Another slot of the tensor is written; that of this turn is not."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((128, 64), nl.float32, buffer=nl.shared_hbm)
        ring = nl.ndarray((128, 2, 64), nl.float32)
        nisa.dma_copy(ring[:, 0, :], x)
        nisa.dma_copy(out, ring[:, 1, :])
        return out

    assert "one slot ahead" in remedy("NK401", kernel, X)


def test_memory_that_nothing_writes_keeps_the_rules_remedy() -> None:
    """A tile that is read and was never written has to be filled."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((128, 64), nl.float32, buffer=nl.shared_hbm)
        tile = nl.ndarray((128, 64), nl.float32)
        nisa.dma_copy(out, tile)
        return out

    assert remedy("NK401", kernel, X) == RULES["NK401"].remedy


def test_an_exchange_by_private_memory() -> None:
    """Each core has a private_hbm of its own."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((2, 128, 64), nl.float32, buffer=nl.shared_hbm)
        box = nl.ndarray((2, 128, 64), nl.float32, buffer=nl.private_hbm)
        tile = nl.ndarray((128, 64), nl.float32)
        core = nl.program_id(0)
        nisa.dma_copy(box[core], x)
        nisa.dma_copy(tile, box[1 - core])
        nisa.dma_copy(out[core], tile)
        return out

    assert remedy("NK401", kernel, X, grid=2).startswith("private_hbm is of one core")


@pytest.mark.parametrize(("barriers", "says"), [(0, RULES["NK502"].remedy), (1, "There is a barrier of this tensor")])
def test_a_second_barrier_where_there_is_one(barriers: int, says: str) -> None:
    """In the second turn a core overwrites what the other one may still read from the first."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((2, 2, 128, 64), nl.float32, buffer=nl.shared_hbm)
        box = nl.ndarray((2, 128, 64), nl.float32, buffer=nl.shared_hbm)
        tile = nl.ndarray((128, 64), nl.float32)
        core = nl.program_id(0)
        for turn in range(2):
            nisa.dma_copy(tile, x)
            nisa.tensor_scalar(tile, tile, nl.add, float(turn) + 2 * core)
            nisa.dma_copy(box[core], tile)
            for _ in range(barriers):
                nisa.core_barrier(box, (0, 1))
            nisa.dma_copy(tile, box[1 - core])
            nisa.dma_copy(out[core, turn], tile)
        return out

    assert remedy("NK502", kernel, X, grid=2).startswith(says)


def test_what_a_chip_lacks_is_told_by_what_is_asked() -> None:
    """A priority is left out; no activation takes its place."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((128, 64), nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(out, x, priority=1)
        return out

    assert remedy("NK606", kernel, X, chip="trn2") == "Leave priority out on this chip."


def test_the_result_of_a_matmul_has_a_shape() -> None:
    """The remedy names it."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((64, 64), nl.float32, buffer=nl.shared_hbm)
        tile, total = nl.ndarray((128, 64), nl.float32), nl.ndarray((128, 64), nl.float32, buffer=nl.psum)
        nisa.dma_copy(tile, x)
        nisa.nc_matmul(total, tile, tile)
        return out

    assert "[0:64, 0:64]" in remedy("NK109", kernel, X)


def test_a_register_is_no_bound_of_a_slice() -> None:
    """It is known when the kernel runs; // would not help."""

    def kernel(x: Any) -> Any:
        register = nisa.register_alloc(1)
        out = nl.ndarray((128, 64), nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(out[register:128], x[register:128])
        return out

    assert "select" in remedy("NK603", kernel, X)


def moved(height: int, *, turns: int, stride: int) -> Any:
    """Return a kernel that stores tiles of 128 rows, each so many rows further."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((height, 64), nl.float32, buffer=nl.shared_hbm)
        tile = nl.ndarray((128, 64), nl.float32)
        for turn in range(turns):
            nisa.dma_copy(tile, x[turn * 128 : (turn + 1) * 128])
            nisa.dma_copy(out[turn * stride : turn * stride + 128], tile)
        return out

    return kernel


def one_program(x: Any) -> Any:
    out = nl.ndarray((256, 64), nl.float32, buffer=nl.shared_hbm)
    first = nl.program_id(0) * 128
    nisa.dma_copy(out[first : first + 128], x[first : first + 128])
    return out


def dynamic(x: Any) -> Any:
    out = nl.ndarray((256, 64), nl.float32, buffer=nl.shared_hbm)
    for _ in nl.dynamic_range(nisa.register_alloc(1)):
        nisa.dma_copy(out[0:128], x)
    return out


def without_a_value(x: Any) -> Any:
    out = nl.ndarray((128, 64), nl.float32, buffer=nl.shared_hbm)
    rows = x.ap([[64, 128], [1, 64]], scalar_offset=nisa.register_alloc(), indirect_dim=0)
    nisa.dma_copy(out, rows)
    return out


def beyond_by_offset(x: Any) -> Any:
    out = nl.ndarray((128, 64), nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(out, x.ap([[64, 128], [1, 64]], offset=64))
    return out


def beyond_a_part(x: Any) -> Any:
    out = nl.ndarray((128, 64), nl.float32, buffer=nl.shared_hbm)
    row = x[11:12]
    nisa.dma_copy(out[0:1], row[11:12])
    return out


def beyond_memory(x: Any) -> Any:
    return nl.ndarray((128, 64), nl.float32, buffer=nl.sbuf, address=(0, 10**6))


def short_pattern(x: Any) -> Any:
    tile = nl.ndarray((128, 64), nl.float32)
    nisa.affine_select(tile, pattern=[[1, 32]], channel_multiplier=-1, on_true_tile=tile, on_false_value=0.0)
    return tile


def met(x: Any) -> Any:
    out = nl.ndarray((128, 64), nl.float32, buffer=nl.shared_hbm)
    nisa.core_barrier(out, (0, 1))
    return out


def block_in_front(x: Any) -> Any:
    blocks, tile = nl.ndarray((2, 128, 64), nl.float32), nl.ndarray((128, 64), nl.float32)
    nisa.tensor_copy(blocks[0:1], tile)
    return tile


@each(
    "rule,kernel,arguments,options,says",
    [
        ("NK403", one_program, (WIDE,), {}, "One program alone has run"),
        ("NK403", moved(256, turns=2, stride=0), (WIDE,), {}, "The store at line"),
        ("NK403", dynamic, (X,), {"nki_version": "0.6"}, "The loop on the device at line"),
        ("NK401", without_a_value, (X,), {}, "Give it a value first"),
        ("NK402", beyond_by_offset, (X,), {}, "Look at the offset of .ap()"),
        ("NK402", beyond_a_part, (X,), {}, "Indices count from the beginning of the part"),
        ("NK402", beyond_memory, (X,), {}, "An address is (partition"),
        ("NK109", short_pattern, (X,), {}, "Let the counts of `pattern` multiply to 64"),
        ("NK606", met, (X,), {"chip": "trn1"}, "Leave it out: on this chip"),
        ("NK102", block_in_front, (X,), {}, "Dimension 0 is the partition dimension, here that of the blocks"),
    ],
    show=str,
)
def test_a_remedy_fits_its_cause(rule: str, kernel: Any, arguments: Any, options: Any, says: str) -> None:
    """Each by what the kernel has done: program ids, stores, loops, registers, patterns, parts, addresses, chips."""
    assert remedy(rule, kernel, *arguments, **options).startswith(says)


def test_a_rank_that_no_pair_has_as_a_target() -> None:
    """It receives nothing; the remedy names the rank."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((128, 64), nl.float32, buffer=nl.shared_hbm)
        sent, got = (nl.ndarray((128, 64), nl.float32, buffer=nl.hbm) for _ in range(2))
        nisa.dma_copy(sent, x)
        collective_permute(srcs=[sent], dsts=[got], source_target_pairs=[[0, 1]])
        nisa.dma_copy(out, got)
        return out

    assert remedy("NK621", kernel, (X,), (X,), ranks=2).startswith("Rank 0 may have received nothing")


def test_exchanged_program_ids_of_the_legacy_dialect() -> None:
    """The remedy asks for the axes, as the sizes of the grid differ."""

    def kernel(x: Any) -> Any:
        out = legacy_nl.ndarray((512, 64), dtype=legacy_nl.float32, buffer=legacy_nl.shared_hbm)
        row = legacy_nl.program_id(1) * 128 + legacy_nl.arange(128)[:, None]
        column = legacy_nl.program_id(0) * 32 + legacy_nl.arange(32)[None, :]
        legacy_nl.store(out[row, column], legacy_nl.load(x[row, column]))
        return out

    run = nkitools.simulate(legacy_nki.jit(kernel), np.ones((512, 64), np.float32), grid=(4, 2), rules="report")
    assert "Are the axes of nl.program_id exchanged? The grid is [4, 2]." in run.findings[0].remedy


def test_a_view_is_named_with_its_slot_and_elements_are_boxes_of_the_tensor() -> None:
    """`ring[:, 1]` is the slot that is read; the boxes are in the ring's own indices, and so is a part's place."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((128, 64), nl.float32, buffer=nl.shared_hbm)
        ring = nl.ndarray((128, 2, 64), nl.float32)
        nisa.dma_copy(ring[:, 0, :], x)
        nisa.dma_copy(ring[:, 1, 0:48], x[:, 0:48])
        nisa.dma_copy(out, ring[:, 1, :])
        return out

    run = nkitools.simulate(kernel, X, rules="report")
    message = next(finding.message for finding in run.findings if finding.rule == "NK401")
    assert "of tensor `ring[:, 1]` (SBUF, float32 [128, 64])" in message
    assert "these are `ring[0:128, 1, 48:64]`" in message
    part = nkitools.simulate(beyond_a_part, np.ones((12, 64), np.float32), rules="report").findings[0].message
    assert part.endswith("it is the part `x[11, 0:64]` of a tensor of [12, 64]")


@pytest.mark.parametrize("load", [nl.load, legacy_nl.load], ids=["modern", "legacy"])
def test_a_vector_that_is_loaded_as_a_column_may_be_a_row(load: Any) -> None:
    """Tiles of rows are no help to what has none; a matrix gets the rule's own remedy."""

    def kernel(x: Any) -> Any:
        load(x)

    run = legacy_nki.jit(kernel) if load is legacy_nl.load else kernel
    assert "x.reshape((1, x.shape[0]))" in remedy("NK101", run, np.ones(256, np.float32))
    assert remedy("NK101", run, WIDE) == RULES["NK101"].remedy


def test_a_destination_is_not_to_be_brought_in() -> None:
    """What is written goes out through SBUF; what is read comes in."""

    def out_in_hbm(x: Any) -> Any:
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nisa.tensor_tensor(dst=out, data1=nl.load(x), data2=nl.load(x), op=nl.add)
        return out

    def in_of_hbm(x: Any) -> Any:
        nisa.tensor_tensor(dst=nl.ndarray(x.shape, x.dtype), data1=x, data2=nl.load(x), op=nl.add)

    assert remedy("NK201", out_in_hbm, X).startswith("Write into a tile in SBUF, then copy that")
    assert remedy("NK201", in_of_hbm, X).startswith("Bring it to SBUF first")
