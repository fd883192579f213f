"""Which instructions made, overwrote and read what each one touches, one way of touching after the other."""

from __future__ import annotations

from typing import Any

import neuronxcc.nki as legacy
import neuronxcc.nki.isa as legacy_isa
import neuronxcc.nki.language as legacy_nl
import numpy as np
import pytest

import nkitools
from nkitools import load_run
from nkitools.dialects.modern import collectives as ncc
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from tests.nki_versions import SINCE_0_7, WITH_REMOVED_NAMES

TILE = (128, 8)
X = np.ones(TILE, np.float32)


def flows(run: Any) -> list[list[int]]:
    """The sources of what each instruction reads."""
    return [run.dependences.flow[at].tolist() for at in range(len(run.instructions))]


def test_the_form() -> None:
    """Compressed rows of int64, made when asked for and kept on the run."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(TILE, nl.float32, buffer=nl.shared_hbm)
        nl.store(out, nl.load(x))
        return out

    run = nkitools.simulate(kernel, X)
    found = run.dependences
    assert run.dependences is found
    for rows in (found.flow, found.output, found.anti):
        assert rows.starts.dtype == rows.sources.dtype == np.int64
        assert len(rows) == len(run.instructions) == 2
    assert found.flow.starts.tolist() == [0, 1, 2]
    assert found.flow.sources.tolist() == [-1, 0]
    assert found.output.sources.tolist() == found.anti.sources.tolist() == []
    with pytest.raises(IndexError):
        found.flow[2]


def test_a_run_without_instructions() -> None:
    """No rows, and a start."""
    run = nkitools.simulate(lambda x: x, X)
    assert run.dependences.flow.starts.tolist() == [0]


def test_arguments_and_unwritten_memory() -> None:
    """They are sources of their own, and nothing that an instruction overwrites."""

    def kernel(x: Any) -> Any:
        tile = nl.ndarray(TILE, nl.float32)
        nisa.dma_copy(dst=tile[:, 0:4], src=x[:, 0:4])
        nisa.tensor_copy(dst=tile, src=tile)
        nisa.dma_copy(dst=x, src=tile)
        nisa.dma_copy(dst=tile, src=x)
        return x

    run = nkitools.simulate(kernel, X.copy(), rules="off")
    assert flows(run) == [[-1], [-2, 0], [1], [2]]
    assert run.dependences.output[3].tolist() == [1]
    assert run.dependences.anti[3].tolist() == [2]


def test_what_adds_up_reads_what_was_there() -> None:
    """An accumulating matmul reads its destination; one that overwrites does not."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.shared_hbm)
        left = nl.load(x)
        total = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=total, stationary=left, moving=left)
        nisa.nc_matmul(dst=total, stationary=left, moving=left)
        nisa.nc_matmul(dst=total, stationary=left, moving=left, accumulate=False)
        tile = nl.ndarray((128, 128), dtype=nl.float32)
        nisa.tensor_copy(dst=tile, src=total)
        nl.store(out, tile)
        return out

    run = nkitools.simulate(kernel, np.ones((128, 128), np.float32), rules="off")
    assert flows(run) == [[-1], [0], [0, 1], [0], [3], [4]]
    assert run.dependences.output[3].tolist() == [2]


def test_gaps_between_elements_stay() -> None:
    """A view with a step writes its elements and no others."""

    def kernel(x: Any, y: Any) -> Any:
        out = nl.ndarray(TILE, nl.float32, buffer=nl.shared_hbm)
        tile = nl.ndarray(TILE, nl.float32)
        nisa.dma_copy(dst=tile[:, 0:8:2], src=x[:, 0:4])
        nisa.dma_copy(dst=tile[:, 1:8:2], src=y[:, 0:4])
        nisa.dma_copy(dst=out[:, 0:3], src=tile[:, 1:6:2])
        nisa.dma_copy(dst=out[:, 3:6], src=tile[:, 0:5:2])
        nisa.dma_copy(dst=out[:, 6:8], src=tile[:, 4:6])
        return out

    assert flows(nkitools.simulate(kernel, X, X)) == [[-1], [-1], [1], [0], [0, 1]]


def test_columns_of_hbm_are_blocks_of_their_own() -> None:
    """What one pass has written to a block of columns another pass reads there."""

    def kernel(x: Any) -> Any:
        scratch = nl.ndarray((128, 64), nl.float32, buffer=nl.private_hbm)
        out = nl.ndarray((128, 64), nl.float32, buffer=nl.shared_hbm)
        for first in range(0, 64, 8):
            nisa.dma_copy(dst=scratch[:, first : first + 8], src=x[:, first : first + 8])
        for first in range(0, 64, 8):
            nisa.dma_copy(dst=out[:, first : first + 8], src=scratch[:, first : first + 8])
        return out

    run = nkitools.simulate(kernel, np.ones((128, 64), np.float32))
    assert flows(run) == [[-1]] * 8 + [[at] for at in range(8)]


def test_chosen_rows_and_their_indices() -> None:
    """A gather and a scatter touch the rows that were chosen, and read the index."""

    def kernel(x: Any, rows: Any) -> Any:
        out = nl.ndarray((8, 4), nl.float32, buffer=nl.shared_hbm)
        index, tile = nl.ndarray((2, 1), nl.int32), nl.ndarray((2, 4), nl.float32)
        nisa.dma_copy(dst=out, src=x)
        nisa.dma_copy(dst=index, src=rows)
        nisa.dma_copy(dst=tile, src=x.vector_select(0, index))
        nisa.dma_copy(dst=out.vector_select(0, index), src=tile)
        for row in (0, 1, 5):
            nisa.dma_copy(dst=tile[0:1], src=out[row : row + 1])
        return out

    run = nkitools.simulate(kernel, np.ones((8, 4), np.float32), np.array([[1], [5]], np.int32))
    assert flows(run) == [[-1], [-1], [-1, 1], [1, 2], [0], [3], [3]]


@WITH_REMOVED_NAMES
def test_registers_are_operands() -> None:
    """Who loaded a register made what is addressed by it, by a sum of it, and by a counter that it bounds."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(TILE, nl.float32, buffer=nl.shared_hbm)
        tile, at = nl.ndarray(TILE, nl.float32), nl.ndarray((1, 1), nl.int32)
        nisa.memset(dst=at, value=1)
        nisa.memset(dst=tile, value=0.0)
        register = nisa.register_alloc(7)
        nisa.tensor_copy(dst=tile[:, 0:1], src=tile[:, nl.ds(register, 1)])
        nisa.register_load(register, at)
        nisa.tensor_copy(dst=tile[:, 0:1], src=tile[:, nl.ds(register, 1)])
        nisa.tensor_copy(dst=tile[:, 1:2], src=tile[:, nl.ds(register + 2, 1)])
        for counter in nl.dynamic_range(register):
            nisa.tensor_copy(dst=tile[:, 5:6], src=tile[:, nl.ds(counter + 3, 1)])
        nisa.register_move(register, 3)
        nl.store(out, tile)
        return out

    run = nkitools.simulate(kernel, X, rules="off")
    assert flows(run)[2:] == [[1], [0], [1, 3], [1, 3], [1, 3], [], [1, 4, 5, 6]]
    assert run.dependences.output[7].tolist() == [3]
    assert run.dependences.anti[7].tolist() == [4]


@SINCE_0_7
def test_scalars_are_operands() -> None:
    """Who loaded a scalar made what is addressed by it, by an expression of it, by a counter, and what stores it."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(TILE, nl.float32, buffer=nl.shared_hbm)
        tile, at = nl.ndarray(TILE, nl.float32), nl.ndarray((1, 1), nl.int32)
        nisa.memset(dst=at, value=1)
        nisa.memset(dst=tile, value=0.0)
        first = nisa.scalar_load(at)
        nisa.tensor_copy(dst=tile[:, 0:1], src=tile[:, nl.ds(first, 1)])
        nisa.scalar_store(at, first)
        second = nisa.scalar_load(at)
        nisa.tensor_copy(dst=tile[:, 2:3], src=tile[:, nl.ds(first + 2 * second, 1)])
        nl.fori_loop(0, second, lambda i: nisa.tensor_copy(dst=tile[:, 5:6], src=tile[:, nl.ds(i + 3, 1)]))
        nisa.scalar_store(at, -second)
        nl.store(out, tile)
        return out

    run = nkitools.simulate(kernel, X, rules="off")
    assert flows(run)[2:] == [[0], [1, 2], [2], [4], [1, 2, 5], [1, 5], [5], [1, 3, 6, 7]]
    assert [run.dependences.output[each].tolist() for each in (4, 5, 8)] == [[0], [], [4]]
    assert [run.dependences.anti[each].tolist() for each in (4, 5, 8)] == [[2], [], [5]]


def test_reduce_registers_and_random_states_are_operands() -> None:
    """What goes on from an engine's state depends on who left it there."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(TILE, nl.float32, buffer=nl.shared_hbm)
        tile, total = nl.load(x), nl.ndarray((128, 1), nl.float32)
        numbers = nl.ndarray((128, 2), nl.uint32)
        for command in (nisa.reduce_cmd.reset_reduce, nisa.reduce_cmd.reduce):
            nisa.activation_reduce(dst=tile, op=nl.copy, data=tile, reduce_op=nl.add, reduce_res=total)
            nisa.activation(dst=tile, op=nl.copy, data=tile, reduce_op=nl.add, reduce_res=total, reduce_cmd=command)
        nisa.rng(dst=numbers)
        nisa.rng(dst=numbers)
        nl.store(out, tile)
        return out

    run = nkitools.simulate(kernel, X, rules="off")
    assert [each.name for each in run.instructions][1:7] == ["activation_reduce", "activation"] * 2 + ["rng", "rng"]
    found = flows(run)
    assert found[4] == [3]
    assert found[5:7] == [[], [5]]


def test_under_a_predicate_both_are_sources() -> None:
    """The instruction under the predicate, and who wrote before it; the next plain write ends that."""

    def kernel(x: Any, chosen: Any) -> Any:
        out = nl.ndarray(TILE, nl.float32, buffer=nl.shared_hbm)
        tile, other, mask = nl.load(x), nl.load(x), nl.load(chosen)
        nisa.tensor_copy_predicated(dst=tile, src=other, predicate=mask)
        nl.store(out, tile)
        nisa.memset(dst=tile, value=0.0)
        nl.store(out, tile)
        return out

    run = nkitools.simulate(kernel, X, np.ones(TILE, np.uint32))
    assert flows(run) == [[-1], [-1], [-1], [1, 2], [0, 3], [], [5]]
    assert run.dependences.output[5].tolist() == [0, 3]
    assert run.dependences.anti[5].tolist() == [4]


def test_storages_that_share_bytes() -> None:
    """A tensor at an address depends on who wrote these bytes, whatever tensor that was through."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(TILE, nl.float32, buffer=nl.shared_hbm)
        first = nl.ndarray(TILE, nl.float32, address=(0, 0), buffer=nl.sbuf)
        second = nl.ndarray(TILE, nl.float32, address=(0, 16), buffer=nl.sbuf)
        nisa.dma_copy(dst=first, src=x)
        nisa.dma_copy(dst=second, src=x)
        nisa.dma_copy(dst=out[:, 0:4], src=first[:, 0:4])
        nisa.dma_copy(dst=out[:, 4:8], src=second[:, 0:4])
        nisa.dma_copy(dst=first[:, 4:8], src=x[:, 4:8])
        nisa.dma_copy(dst=out, src=second)
        return out

    run = nkitools.simulate(kernel, X, rules="off")
    assert flows(run) == [[-1], [-1], [0], [1], [-1], [1, 4]]
    assert run.dependences.output[1].tolist() == [0]
    assert (run.dependences.output[4].tolist(), run.dependences.anti[4].tolist()) == ([1], [3])


def test_a_plan_that_touches_parts() -> None:
    """A shuffle reads and writes the partitions that its mask names."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((32, 8), nl.float32, buffer=nl.shared_hbm)
        tile, other = nl.ndarray((32, 8), nl.float32), nl.ndarray((32, 8), nl.float32)
        nisa.dma_copy(dst=tile[0:16], src=x[0:16])
        nisa.dma_copy(dst=tile[16:32], src=x[16:32])
        nisa.memset(dst=other, value=0.0)
        mask = [255] * 32
        mask[3] = 20
        nisa.nc_stream_shuffle(dst=other, src=tile, shuffle_mask=mask)
        nisa.dma_copy(dst=out[0:2], src=other[2:4])
        nisa.dma_copy(dst=out[2:4], src=other[4:6])
        return out

    run = nkitools.simulate(kernel, np.ones((32, 8), np.float32), rules="off")
    assert flows(run) == [[-1], [-1], [], [1], [2, 3], [2]]


def test_legacy_masks() -> None:
    """Under an affine mask only its lanes are written, and read."""

    def kernel(x: Any) -> Any:
        out = legacy_nl.ndarray((8, 8), dtype=x.dtype, buffer=legacy_nl.shared_hbm)
        p, f = legacy_nl.arange(8)[:, None], legacy_nl.arange(8)[None, :]
        tile = legacy_nl.zeros((8, 8), dtype=x.dtype)
        tile[p, f] = legacy_nl.load(x[p, f], mask=f < 5)
        tile[p, f] = legacy_isa.tensor_copy(tile[p, f], mask=p + f < 4)
        for column in range(8):
            legacy_nl.store(
                out[p, column + legacy_nl.arange(1)[None, :]], tile[p, column + legacy_nl.arange(1)[None, :]]
            )
        return out

    run = nkitools.simulate(legacy.jit(kernel), np.ones((8, 8), np.float32))
    names = [each.name for each in run.instructions]
    first = len(names) - 8
    zeroed, loaded, copied = first - 3, first - 2, first - 1
    assert flows(run)[copied] == [loaded]
    assert flows(run)[first:] == [[loaded, copied]] * 4 + [[loaded]] + [[zeroed]] * 3


def test_sendrecv_depends_on_the_other_core() -> None:
    """What a core has received the other core's instruction has sent."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((2, *TILE), nl.float32, buffer=nl.shared_hbm)
        me = nl.program_id(0)
        mine, theirs = nl.load(x), nl.ndarray(TILE, nl.float32)
        nisa.sendrecv(src=mine, dst=theirs, send_to_rank=1 - me, recv_from_rank=1 - me, pipe_id=0)
        nl.store(out[me], theirs)
        return out

    run = nkitools.simulate(kernel, X, grid=2)
    where = {(each.program[0], each.name): at for at, each in enumerate(run.instructions) if each.name == "sendrecv"}
    loads = {each.program[0]: at for at, each in reversed(list(enumerate(run.instructions)))}
    for core in (0, 1):
        found = run.dependences.flow[where[core, "sendrecv"]].tolist()
        assert found == sorted((loads[core], where[1 - core, "sendrecv"]))


def test_collectives_depend_on_their_senders() -> None:
    """A gather depends on all ranks, a permute on the one before; positions go on from rank to rank."""

    def kernel(x: Any) -> Any:
        mine = nl.ndarray((2, 4), nl.float32, buffer=nl.private_hbm)
        every = nl.ndarray((6, 4), nl.float32, buffer=nl.private_hbm)
        moved = nl.ndarray((2, 4), nl.float32, buffer=nl.private_hbm)
        nisa.dma_copy(dst=mine, src=x)
        group = ncc.ReplicaGroup([[0, 1, 2]])
        ncc.all_gather(srcs=[mine], dsts=[every], replica_group=group, collective_dim=0)
        ncc.collective_permute(srcs=[mine], dsts=[moved], source_target_pairs=[(0, 1), (1, 2), (2, 0)])
        return moved

    arrays = [(np.full((2, 4), rank, np.float32),) for rank in range(3)]
    run = nkitools.simulate(kernel, *arrays, ranks=3)
    assert flows(run) == [*([-1], [0, 4, 7], [0, 8]), *([-1], [1, 3, 7], [2, 3]), *([-1], [1, 4, 6], [5, 6])]


def test_a_saved_run_has_them_too(tmp_path: Any) -> None:
    """What is kept beside the rows is in the file."""

    def kernel(x: Any, rows: Any, chosen: Any) -> Any:
        out = nl.ndarray((8, 4), nl.float32, buffer=nl.shared_hbm)
        index, tile = nl.load(rows), nl.ndarray((2, 4), nl.float32)
        register = nisa.register_alloc(index[0:1])
        nisa.dma_copy(dst=out, src=x)
        nisa.dma_copy(dst=tile, src=x.vector_select(0, index))
        nisa.tensor_copy_predicated(dst=tile, src=tile, predicate=nl.load(chosen))
        nisa.dma_copy(dst=out.vector_select(0, index), src=tile)
        nisa.dma_copy(dst=tile[0:1, 0:1], src=out[0:1, nl.ds(register, 1)])
        nisa.dma_copy(dst=tile[0:1], src=out[5:6])
        return out

    rows, chosen = np.array([[1], [5]], np.int32), np.ones((2, 4), np.uint32)
    run = nkitools.simulate(kernel, np.ones((8, 4), np.float32), rows, chosen)
    run.save(tmp_path / "run.json")
    loaded = load_run(tmp_path / "run.json")
    for kind in ("flow", "output", "anti"):
        first, second = (getattr(each.dependences, kind) for each in (run, loaded))
        np.testing.assert_array_equal(first.starts, second.starts)
        np.testing.assert_array_equal(first.sources, second.sources)
    assert flows(loaded)[-2:] == [[1, 2], [6]]


def test_what_each_operand_reads() -> None:
    """The same by operands: one row for each of them, those that are written without sources."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(TILE, nl.float32, buffer=nl.shared_hbm)
        first, second = nl.load(x), nl.load(x)
        nisa.tensor_tensor(dst=first, data1=first, data2=second, op=nl.add)
        nl.store(out, first)
        return out

    found = nkitools.simulate(kernel, X).dependences.by_operand
    assert [found[at].tolist() for at in range(len(found))] == [[], [-1], [], [-1], [], [0], [1], [], [2]]


def test_operands_of_a_rank_behind_one_without_operands() -> None:
    """Sources count from the first instruction of their own rank, also where no rank before has operands."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(TILE, nl.float32, buffer=nl.shared_hbm)
        nisa.register_move(nisa.register_alloc(3), 4)
        if x.shape == TILE:
            nl.store(out, nl.load(x))
        return out

    run = nkitools.simulate(kernel, (X[:, :4],), (X,), ranks=2, rules="off")
    found = run.dependences.by_operand
    assert [each.name for each in run.instructions[:2]] == ["register_move", "register_move"]
    assert [found[at].tolist() for at in range(len(found))] == [[], [-1], [], [2]]
