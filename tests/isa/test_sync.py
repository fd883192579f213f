"""core_barrier and sendrecv: what they move, what they order, what they refuse, and kernels of two cores that use them.

The expected values are NumPy's, computed from the definition in the docstrings.
"""

from __future__ import annotations

import _thread
import threading
import time
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools import options
from nkitools.dialects import modern as nki
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from tests.isa.issued import empty, placed, tile
from tests.isa.issued import refusal as refused_alone

X = np.arange(128 * 8, dtype=np.float32).reshape(128, 8)


@pytest.fixture(autouse=True)
def _no_thread_outlives_its_run() -> Any:
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) == before


def finding_of(kernel: Any, *arrays: Any, **keywords: Any) -> Any:
    """The one finding of a run on two cores (of one or both of them), the same at both levels of the rules."""
    with pytest.raises(nkitools.KernelError) as raised:
        nkitools.simulate(kernel, *arrays, grid=2, **keywords)
    run = nkitools.simulate(kernel, *arrays, grid=2, rules="report", **keywords)
    assert {(each.rule, each.line) for each in run.findings} == {
        (raised.value.finding.rule, raised.value.finding.line),
    }
    assert len({each.program for each in run.findings}) == len(run.findings)
    return raised.value.finding


def exchange(src: Any, dst: Any, pipe: int = 0, **keywords: Any) -> None:
    other = 1 - nl.program_id(0)
    nisa.sendrecv(src=src, dst=dst, send_to_rank=other, recv_from_rank=other, pipe_id=pipe, **keywords)


def sbuf(shape: Any, dtype: Any = nl.float32) -> Any:
    return nl.ndarray(shape, dtype, buffer=nl.sbuf)


def hbm(shape: Any, dtype: Any = nl.float32) -> Any:
    return nl.ndarray(shape, dtype, buffer=nl.shared_hbm)


# --- kernels ---------------------------------------------------------------------------------------------------------


@nki.jit
def swapped(x: Any) -> Any:
    """Each core gets the half of the rows that the other has loaded, times 1 more than the other's number."""
    out = hbm(x.shape)
    core = nl.program_id(0)
    rows = nl.ds(64 * core, 64)
    mine, theirs = nl.load(x[rows, :]), sbuf((64, x.shape[1]))
    nisa.tensor_scalar(mine, mine, nl.multiply, 1.0 + core)
    exchange(mine, theirs)
    nisa.dma_copy(dst=out[rows, :], src=theirs)
    return out


def swapped_by_numpy(x: Any) -> Any:
    return np.concatenate([2 * x[64:], x[:64]])


@nki.jit
def mean_of_rows(x: Any) -> Any:
    """Sums of each half by either core, through shared memory: rows minus the mean of all rows."""
    sums, out = hbm((2, x.shape[1])), hbm(x.shape)
    core = nl.program_id(0)
    rows = nl.ds(64 * core, 64)
    half = nl.load(x[rows, :])
    ones, total = sbuf((64, 64)), nl.ndarray((64, x.shape[1]), nl.float32, buffer=nl.psum)
    nisa.memset(ones, 1.0)
    nisa.nc_matmul(dst=total, stationary=ones, moving=half)
    row = sbuf((1, x.shape[1]))
    nisa.tensor_copy(dst=row, src=total[0:1, :])
    nisa.dma_copy(dst=sums[nl.ds(core, 1), :], src=row)
    nisa.core_barrier(data=sums, cores=(0, 1))
    mean = sbuf((64, x.shape[1]))
    nisa.memset(mean, 0.0)
    for each in range(2):
        copies = sbuf((64, x.shape[1]))
        nisa.dma_copy(dst=copies, src=sums.ap([[0, 64], [1, x.shape[1]]], offset=each * x.shape[1]))
        nisa.tensor_tensor(mean, mean, copies, nl.add)
    nisa.tensor_scalar(mean, mean, nl.multiply, 1 / 128)
    nisa.tensor_tensor(half, half, mean, nl.subtract)
    nisa.dma_copy(dst=out[rows, :], src=half)
    return out


def mean_of_rows_by_numpy(x: Any) -> Any:
    return x - x.mean(axis=0)


@nki.jit
def ping_pong(x: Any) -> Any:
    """In place, in turns: the cores write the halves that the other has read before the barrier."""
    core = nl.program_id(0)
    for turn in range(4):
        rows = nl.ds(64 * ((core + turn) % 2), 64)
        part = nl.load(x[rows, :])
        nisa.tensor_scalar(part, part, nl.multiply, 2.0, op1=nl.add, operand1=float(core))
        nl.store(x[rows, :], part)
        nisa.core_barrier(x, [0, 1])
    return x


def ping_pong_by_numpy(x: Any) -> Any:
    x = x.copy()
    for turn in range(4):
        for core in range(2):
            start = 64 * ((core + turn) % 2)
            x[start : start + 64] = 2 * x[start : start + 64] + core
    return x


@nki.jit
def halves_of_one_tile(x: Any) -> Any:
    """src and dst are parts of one tensor, on two pipes, inside of an inlined kernel."""
    out = hbm((2, *x.shape))
    core = nl.program_id(0)
    tiles = sbuf((128, 4, 8))
    both(x, tiles, core)
    nisa.dma_copy(dst=out[core], src=tiles[:, 0:2, :].reshape((128, 16))[:, 0:8])
    return out


@nki.jit
def both(x: Any, tiles: Any, core: int) -> None:
    nisa.dma_copy(dst=tiles[:, core, :], src=x)
    nisa.tensor_scalar(tiles[:, core, :], tiles[:, core, :], nl.add, float(core))
    exchange(tiles[:, nl.ds(core, 1), :], tiles[:, nl.ds(1 - core, 1), :], pipe=0)
    exchange(tiles[:, 0:2, :], tiles[:, 2:4, :], pipe=1)


def halves_of_one_tile_by_numpy(x: Any) -> Any:
    return np.stack([x, x])


KERNELS = [
    (swapped, swapped_by_numpy),
    (mean_of_rows, mean_of_rows_by_numpy),
    (ping_pong, ping_pong_by_numpy),
    (halves_of_one_tile, halves_of_one_tile_by_numpy),
]
SEEDS = 250  # of each kernel: a thousand interleavings


@pytest.mark.parametrize(("kernel", "by_numpy"), KERNELS, ids=lambda each: getattr(each, "__name__", ""))
def test_every_interleaving_gives_one_result(kernel: Any, by_numpy: Any) -> None:
    """And no finding; the order of the programs' instructions differs."""
    expected = by_numpy(X)
    orders = set()
    for seed in [None, *map(str, range(SEEDS))]:
        with options.override(schedule_seed=seed):
            run = nkitools.simulate(kernel, X.copy(), grid=2)
        np.testing.assert_allclose(run.outputs, expected, rtol=1e-6)
        assert run.findings == []
        if seed is None or int(seed) < 40:
            orders.add(tuple(each.program for each in run.instructions))
    assert len(orders) > 5


# --- sendrecv --------------------------------------------------------------------------------------------------------


class TestSendrecv:
    """src goes to the other core's dst."""

    @pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3", "uint8", "int32"])
    def test_it_moves_bits(self, dtype: str) -> None:
        """Any dtype, as it is; src is what it was, also where it is overwritten before the other core comes."""
        kind = getattr(nl, dtype)
        values = np.arange(2 * 4 * 6).reshape(2, 4, 6).astype(kind.dtype if hasattr(kind, "dtype") else kind)

        def kernel(x: Any) -> Any:
            out = hbm((2, 4, 6), kind)
            core = nl.program_id(0)
            mine, theirs = nl.load(x[core]), sbuf((4, 6), kind)
            exchange(mine, theirs)
            nisa.memset(mine, 0)
            nisa.dma_copy(dst=out[core], src=theirs)
            return out

        out = nkitools.simulate(kernel, values, grid=2).outputs
        np.testing.assert_array_equal(out.view(np.uint8), values[::-1].view(np.uint8))

    def test_the_calls_with_one_pipe_meet_in_order(self) -> None:
        """The n-th of one core is the n-th of the other, on each pipe by itself."""

        def kernel() -> Any:
            out = hbm((2, 3))
            core = nl.program_id(0)
            mine, theirs = sbuf((1, 3)), sbuf((1, 3))
            for turn in range(3):
                nisa.memset(mine[:, nl.ds(turn, 1)], 10 * core + turn)
                exchange(mine[:, nl.ds(turn, 1)], theirs[:, nl.ds(turn, 1)], pipe=turn % 2)
            nisa.dma_copy(dst=out[nl.ds(core, 1), :], src=theirs)
            return out

        np.testing.assert_array_equal(nkitools.simulate(kernel, grid=2).outputs, [[10, 11, 12], [0, 1, 2]])

    def test_it_is_recorded_once_for_each_core(self) -> None:
        """With its operands, its engine, and the price of a transfer."""
        run = nkitools.simulate(swapped, X, grid=2)
        issued = [each for each in run.instructions if each.name == "sendrecv"]
        assert sorted(each.program for each in issued) == [(0,), (1,)]
        for each in issued:
            assert each.engine == "dma"
            assert [(operand.memory, operand.written) for operand in each.operands] == [("SBUF", False), ("SBUF", True)]
            assert each.cycles > 1000

    def test_what_was_never_written_cannot_be_sent(self) -> None:
        """NK401 of the sender, in its own line."""

        def kernel() -> None:
            exchange(sbuf((4, 4)), sbuf((4, 4)))

        assert finding_of(kernel).rule == "NK401"

    @pytest.mark.parametrize(
        ("shapes", "dtypes", "rule"),
        [
            (((4, 8), (2, 8)), (nl.float32, nl.float32), "NK102"),
            (((4, 8), (4, 4)), (nl.float32, nl.float32), "NK109"),
            (((4, 8), (4, 8)), (nl.float32, nl.int32), "NK301"),
        ],
    )
    def test_the_cores_exchange_tiles_of_one_form(self, shapes: Any, dtypes: Any, rule: str) -> None:
        """What one expects the other sends; the finding has both forms and both lines."""

        def kernel() -> None:
            core = nl.program_id(0)
            mine, theirs = (sbuf(shapes[core], dtypes[core]) for _ in range(2))
            nisa.memset(mine, 1)
            if core:
                exchange(mine, theirs, pipe=3)
            else:
                exchange(mine, theirs, pipe=3)

        found = finding_of(kernel)
        assert found.rule == rule
        assert f"pipe_id=3 program 0 exchanges {dtypes[0]} {list(shapes[0])} at test_sync.py" in found.message
        assert f"program 1 {dtypes[1]} {list(shapes[1])} at test_sync.py" in found.message

    def test_equal_elements_of_each_partition_are_enough(self) -> None:
        """[4, 2, 3] goes into [4, 6], element by element."""

        def kernel() -> Any:
            out = hbm((2, 4, 6))
            mine, theirs = sbuf((4, 2, 3)), sbuf((4, 6))
            nisa.iota(mine, [[1, 6]], offset=100 * nl.program_id(0), channel_multiplier=10)
            exchange(mine, theirs)
            nisa.dma_copy(dst=out[nl.program_id(0)], src=theirs)
            return out

        table = np.add.outer(10 * np.arange(4), np.arange(6))
        np.testing.assert_array_equal(nkitools.simulate(kernel, grid=2).outputs, [table + 100, table])


FLOATS = np.ones((4, 8), np.float32)
WIDE = np.ones((4, 257), np.float32)
TO = {"send_to_rank": 1, "recv_from_rank": 1, "pipe_id": 0}
REFUSED: dict[str, tuple[str, Any, Any, dict[str, Any]]] = {
    "src in HBM": ("NK201", tile(FLOATS, "private_hbm"), empty((4, 8)), TO),
    "dst in PSUM": ("NK201", tile(FLOATS), empty((4, 8), memory="psum"), TO),
    "another dtype": ("NK301", tile(FLOATS), empty((4, 8), nl.bfloat16), TO),
    "other partitions": ("NK102", tile(FLOATS), empty((2, 8)), TO),
    "other elements": ("NK109", tile(FLOATS), empty((4, 4)), TO),
    "rank 2": ("NK609", tile(FLOATS), empty((4, 8)), {**TO, "send_to_rank": 2}),
    "a rank that is no number": ("NK609", tile(FLOATS), empty((4, 8)), {**TO, "recv_from_rank": "1"}),
    "a pipe that is no number": ("NK609", tile(FLOATS), empty((4, 8)), {**TO, "pipe_id": None}),
    "no DMA engine": ("NK609", tile(FLOATS), empty((4, 8)), {**TO, "dma_engine": nisa.engine.dma}),
    "too much for the GpSimd Engine": (
        "NK107",
        tile(WIDE),
        empty((4, 257)),
        {**TO, "dma_engine": nisa.dma_engine.gpsimd_dma},
    ),
}


@pytest.mark.parametrize(("rule", "src", "dst", "keywords"), REFUSED.values(), ids=REFUSED)
def test_what_sendrecv_refuses(rule: str, src: Any, dst: Any, keywords: dict[str, Any]) -> None:
    """By rule, once for each core, at both levels; whoever is the other one."""

    def kernel() -> None:
        ranks = {role: 1 - nl.program_id(0) for role in ("send_to_rank", "recv_from_rank") if keywords[role] == 1}
        nisa.sendrecv(placed(src), placed(dst), **{**keywords, **ranks})

    assert finding_of(kernel).rule == rule


def test_an_exchange_takes_two_cores() -> None:
    """NK613 in a launch on one."""
    found = refused_alone(nisa.sendrecv, tile(FLOATS), empty((4, 8)), **TO)
    assert (found.rule, "kernel[2]" in found.remedy) == ("NK613", True)


@pytest.mark.parametrize(("dtype", "most"), [(nl.float32, 256), (nl.bfloat16, 256), (nl.uint8, 256)])
def test_the_gpsimd_dma_takes_256_elements_of_a_partition(dtype: Any, most: int) -> None:
    """1024 bytes of 32-bit types, 512 of 16-bit, 256 of 8-bit."""

    def kernel(count: int) -> None:
        mine, theirs = sbuf((4, count), dtype), sbuf((4, count), dtype)
        nisa.memset(mine, 1)
        exchange(mine, theirs, dma_engine=nisa.dma_engine.gpsimd_dma)

    assert nkitools.simulate(kernel, most, grid=2).findings == []
    assert finding_of(kernel, most + 1).rule == "NK107"


def test_a_core_does_not_send_to_itself() -> None:
    """NK607: the reference describes an exchange of two."""

    def kernel() -> None:
        mine, theirs = nl.ones((4, 4), nl.float32), sbuf((4, 4))
        nisa.sendrecv(mine, theirs, send_to_rank=0, recv_from_rank=1, pipe_id=0)

    with pytest.raises(nkitools.NotModelled, match="`send_to_rank`=0 is this core itself") as raised:
        nkitools.simulate(kernel, grid=2)
    assert raised.value.finding.program == (0,)


@pytest.mark.parametrize("talk", ["barrier", "exchange"])
def test_neuroncore_v2_has_neither(talk: str) -> None:
    """NK606."""

    def kernel(x: Any) -> Any:
        if talk == "barrier":
            nisa.core_barrier(x, (0, 1))
        else:
            exchange(nl.ones((4, 4), nl.float32), sbuf((4, 4)))
        return x

    run = nkitools.simulate(kernel, X, grid=2, chip="trn1", rules="report")
    assert {each.rule for each in run.findings} == {"NK606"}
    for chip in ("trn2", "trn3"):
        assert nkitools.simulate(kernel, X, grid=2, chip=chip).findings == []


# --- core_barrier ----------------------------------------------------------------------------------------------------


class TestBarrier:
    """Who waits, on what, and what is recorded."""

    @pytest.mark.parametrize("cores", [(0,), [0], 0, np.int64(0)])
    @pytest.mark.parametrize("grid", [None, 1, 2])
    def test_core_0_alone_waits_for_nobody(self, cores: Any, grid: Any) -> None:
        """As public kernels write it for a launch on one core; on two it does not wait either."""

        def kernel(x: Any) -> Any:
            if nl.program_id(0) == 0:
                nisa.core_barrier(x, cores)
            return x

        run = nkitools.simulate(kernel, X, grid=grid)
        assert run.findings == []
        assert [each.name for each in run.instructions] == ["core_barrier"]

    @pytest.mark.parametrize("engine", ["gpsimd", "vector", "scalar", "tensor", "sync", "unknown"])
    def test_it_is_recorded_for_each_core(self, engine: str) -> None:
        """On its engine (GpSimd where it is left open), with its data, which it does not write."""

        def kernel(x: Any) -> Any:
            nisa.core_barrier(x, cores=(0, 1), engine=nisa.engine[engine], name=f"fence {nl.program_id(0)}")
            return x

        run = nkitools.simulate(kernel, X, grid=2)
        assert sorted(each.program for each in run.instructions) == [(0,), (1,)]
        for each in run.instructions:
            expected = "gpsimd" if engine == "unknown" else engine
            assert (each.name, each.engine) == ("core_barrier", expected)
            assert [(operand.tensor, operand.written) for operand in each.operands] == [("x", False)]
        assert run.record is not None
        assert {(program, name): run.instructions[at].program for program, at, name in run.record.labels} == {
            ((0,), "fence 0"): (0,),
            ((1,), "fence 1"): (1,),
        }

    def test_an_sbuf_tensor_keeps_the_cores_together(self) -> None:
        """As in public kernels with loops on the device; they differ from core to core, and still are one barrier."""

        def kernel() -> None:
            block = sbuf((1, 1), nl.int32)
            nisa.memset(block, 0)
            nisa.core_barrier(block, (0, 1))

        run = nkitools.simulate(kernel, grid=2)
        assert [each.name for each in run.instructions] == ["memset", "memset", "core_barrier", "core_barrier"]

    @pytest.mark.parametrize(
        ("rule", "call"),
        [
            ("NK609", lambda x: nisa.core_barrier(x, (0, 1, 2))),
            ("NK609", lambda x: nisa.core_barrier(x, (1, 0))),
            ("NK609", lambda x: nisa.core_barrier(x, (1,))),
            ("NK609", lambda x: nisa.core_barrier(x, "01")),
            ("NK609", lambda x: nisa.core_barrier(x, None)),
            ("NK609", lambda x: nisa.core_barrier(x, True)),
            ("NK609", lambda x: nisa.core_barrier(x)),
            ("NK609", lambda x: nisa.core_barrier(x, (0, 1), wait=True)),
            ("NK609", lambda x: nisa.core_barrier(X, (0, 1))),
            ("NK609", lambda x: nisa.core_barrier(x, (0, 1), engine="gpsimd")),
            ("NK609", lambda x: nisa.core_barrier(x, (0, 1), name=3)),
            ("NK206", lambda x: nisa.core_barrier(x, (0, 1), engine=nisa.engine.dma)),
            ("NK201", lambda x: nisa.core_barrier(nl.ndarray((4, 4), nl.float32, buffer=nl.private_hbm), (0, 1))),
            ("NK201", lambda x: nisa.core_barrier(nl.ndarray((4, 4), nl.float32, buffer=nl.psum), (0, 1))),
        ],
    )
    def test_what_it_refuses(self, rule: str, call: Any) -> None:
        """At the author's line."""

        def kernel(x: Any) -> Any:
            call(x)
            return x

        with pytest.raises(nkitools.KernelError) as raised:
            nkitools.simulate(kernel, X, grid=2)
        assert (raised.value.finding.rule, raised.value.finding.file) == (rule, __file__)

    def test_two_cores_need_two_cores(self) -> None:
        """NK613 in a launch on one; it does not wait for ever."""

        def kernel(x: Any) -> Any:
            nisa.core_barrier(x, (0, 1))
            return x

        run = nkitools.simulate(kernel, X, rules="report")
        assert [each.rule for each in run.findings] == ["NK613"]
        np.testing.assert_array_equal(run.outputs, X)


# --- deadlocks -------------------------------------------------------------------------------------------------------


def _ended(core: int, x: Any, y: Any) -> None:
    if core == 0:
        nisa.core_barrier(x, (0, 1))


def _other_data(core: int, x: Any, y: Any) -> None:
    nisa.core_barrier(x if core == 0 else y, (0, 1))


def _other_pipe(core: int, x: Any, y: Any) -> None:
    nisa.sendrecv(nl.ones((4, 4), nl.float32), sbuf((4, 4)), 1 - core, 1 - core, pipe_id=core)


def _barrier_and_exchange(core: int, x: Any, y: Any) -> None:
    if core == 0:
        nisa.core_barrier(y, (0, 1))
    else:
        exchange(nl.ones((4, 4), nl.float32), sbuf((4, 4)), pipe=7)


def _one_turn_less(core: int, x: Any, y: Any) -> None:
    for _ in range(3 - core):
        nisa.core_barrier(y, (0, 1))


class TestDeadlocks:
    """NK504: never a hang, in no order of the programs."""

    @pytest.mark.parametrize(
        ("body", "told"),
        [
            (_ended, ["program 0 waits in nisa.core_barrier of tensor `x` (shared HBM", "program 1 has ended"]),
            (
                _other_data,
                ["program 0 waits in nisa.core_barrier of tensor `x`", "program 1 waits in nisa.core_barrier of"],
            ),
            (
                _other_pipe,
                ["program 0 waits in nisa.sendrecv with pipe_id=0", "program 1 waits in nisa.sendrecv with pipe_id=1"],
            ),
            (
                _barrier_and_exchange,
                ["in nisa.core_barrier of tensor `y`", "program 1 waits in nisa.sendrecv with pipe_id=7"],
            ),
            (_one_turn_less, ["program 0 waits in nisa.core_barrier of tensor `y`", "program 1 has ended"]),
        ],
    )
    @pytest.mark.parametrize("seed", [None, "1", "2", "3", "4"])
    def test_it_says_who_waits_for_what(self, body: Any, told: list[str], seed: str | None) -> None:
        """With the line of each, in the line of program 0."""

        def kernel(x: Any, y: Any) -> Any:
            body(nl.program_id(0), x, y)
            return x

        with options.override(schedule_seed=seed):
            found = finding_of(kernel, X, X.copy())
        assert (found.rule, found.program, found.function) == ("NK504", (0,), body.__name__)
        for text in told:
            assert text in found.message
        assert found.message.count("test_sync.py:") == found.message.count(" waits in ")

    def test_a_run_that_collects_ends_without_outputs(self) -> None:
        """There is no result."""

        def kernel(x: Any) -> Any:
            _ended(nl.program_id(0), x, None)
            return x

        assert nkitools.simulate(kernel, X, grid=2, rules="report").outputs is None
        with pytest.raises(nkitools.KernelError, match="NK504"):
            nkitools.simulate(kernel, X, grid=2, rules="off")


# --- what surrounds programs that talk -------------------------------------------------------------------------------


class Unlucky(Exception):
    """An exception of the author's own."""


class TestSurroundings:
    """Exceptions, interrupts, the record and the prints of programs in several threads."""

    @pytest.mark.parametrize("faulty", [0, 1])
    @pytest.mark.parametrize("level", ["error", "report", "off"])
    def test_an_exception_of_one_program_is_that_of_the_run(self, faulty: int, level: str) -> None:
        """It is the very exception; the other program is ended where it stands."""
        error = Unlucky("no luck")
        ended: list[int] = []

        def kernel(x: Any) -> Any:
            try:
                nisa.core_barrier(x, (0, 1))
                if nl.program_id(0) == faulty:
                    raise error
                nisa.core_barrier(x, (0, 1))
            finally:
                ended.append(nl.program_id(0))

        with nkitools.collect_runs() as runs, pytest.raises(Unlucky) as raised:
            nkitools.simulate(kernel, X, grid=2, rules=level)
        assert raised.value is error
        assert (error.__context__, error.__cause__) == (None, None)
        names = [frame.name for frame in raised.traceback]
        assert names[-1] == "kernel"
        assert not any("baton" in str(frame.path) or "threading" in str(frame.path) for frame in raised.traceback)
        assert sorted(ended) == [0, 1]
        assert (runs[0].error, runs[0].findings) == (error, [])

    @pytest.mark.parametrize("faulty", [0, 1])
    def test_a_finding_of_one_program_ends_the_other(self, faulty: int) -> None:
        """With the program that it is of."""

        def kernel(x: Any) -> Any:
            nisa.core_barrier(x, (0, 1))
            if nl.program_id(0) == faulty:
                nl.load(x)[0:200]
            nisa.core_barrier(x, (0, 1))
            return x

        found = finding_of(kernel, X)
        assert (found.rule, found.program) == ("NK402", (faulty,))

    @pytest.mark.usefixtures("ctrl_c")
    def test_ctrl_c_ends_a_program_in_another_thread(self) -> None:
        """Where it computes in plain Python."""

        def kernel(x: Any) -> Any:
            if nl.program_id(0) == 0:
                nisa.core_barrier(x, (0, 1))
            _thread.interrupt_main()
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline:
                pass

        with nkitools.collect_runs() as runs, pytest.raises(KeyboardInterrupt):
            nkitools.simulate(kernel, X, grid=2)
        assert isinstance(runs[0].error, KeyboardInterrupt)
        np.testing.assert_array_equal(nkitools.simulate(swapped, X, grid=2).outputs, swapped_by_numpy(X))

    @pytest.mark.parametrize("seed", [None, *map(str, range(12))])
    def test_instructions_know_their_program_and_their_loops(self, seed: str | None) -> None:
        """Whatever ran between them."""

        def kernel(x: Any) -> Any:
            core = nl.program_id(0)
            for m in nl.affine_range(3):
                mark = nl.ndarray((4, 4), nl.float32, buffer=nl.sbuf, name=f"core {core} loop {m}")
                nisa.dma_copy(dst=mark, src=x[0:4, 0:4])
                for k in nl.affine_range(2):
                    nisa.core_barrier(x, (0, 1))
                    inner = nl.ndarray((4, 4), nl.float32, buffer=nl.sbuf, name=f"core {core} loop {m} {k}")
                    nisa.dma_copy(dst=inner, src=x[0:4, 0:4])
                nl.device_print(f"core {core} loop {m}", mark)
            return x

        with options.override(schedule_seed=seed):
            run = nkitools.simulate(kernel, X, grid=2)
        copies = [each for each in run.instructions if each.name == "dma_copy"]
        assert len(copies) == 18
        for each in copies:
            counters = " ".join(str(value) for value in each.loops.values())
            assert each.operands[0].tensor == f"core {each.program[0]} loop {counters}"
        assert len(run.prints) == 6
        for line in run.prints:
            assert line.prefix == f"core {line.program[0]} loop {line.loops['m']}"

    def test_the_kth_shared_allocation_is_one_buffer_in_every_order(self) -> None:
        """Private ones and those on chip are each program's own."""

        def kernel() -> Any:
            first, own, second = hbm((2, 4)), nl.ndarray((1, 4), nl.float32, buffer=nl.private_hbm), hbm((2, 4))
            core = nl.program_id(0)
            one = sbuf((1, 4))
            nisa.memset(one, 1.0 + core)
            nisa.dma_copy(dst=own, src=one)
            nisa.dma_copy(dst=first[nl.ds(core, 1), :], src=own)
            nisa.core_barrier(first, (0, 1))
            nisa.dma_copy(dst=second[nl.ds(core, 1), :], src=first[nl.ds(1 - core, 1), :])
            nisa.core_barrier(second, (0, 1))
            return second, own

        for seed in [None, *map(str, range(20))]:
            with options.override(schedule_seed=seed):
                second, own = nkitools.simulate(kernel, grid=2).outputs
            np.testing.assert_array_equal(second, [[2] * 4, [1] * 4])
            np.testing.assert_array_equal(own, [[1] * 4])

    def test_inputs_that_are_returned_are_the_arrays_themselves(self) -> None:
        """Written in place by both programs."""
        x = X.copy()
        run = nkitools.simulate(ping_pong, x, grid=2)
        assert run.outputs is x
        np.testing.assert_array_equal(x, ping_pong_by_numpy(X))


@pytest.mark.parametrize("seed", ["x", "1.5"])
def test_a_seed_is_an_integer(seed: str) -> None:
    """The option says so by its name."""
    with options.override(schedule_seed=seed), pytest.raises(ValueError, match="NKITOOLS_SCHEDULE_SEED"):
        nkitools.simulate(swapped, X, grid=2)
