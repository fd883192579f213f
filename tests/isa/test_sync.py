"""core_barrier and sendrecv: what they move and what they refuse.

The expected values are NumPy's, computed from the definition in the docstrings.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from tests.isa.issued import empty, placed, tile
from tests.isa.issued import refusal as refused_alone
from tests.isa.talking import X, exchange, finding_of, hbm, no_thread_outlives_its_run, sbuf, swapped  # noqa: F401 - a fixture

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
            assert (each.cycles, each.nanoseconds > 1000) == (0, True)

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
        assert f"pipe_id=3 program 0 exchanges {dtypes[0]} {list(shapes[0])} at talking.py" in found.message
        assert f"program 1 {dtypes[1]} {list(shapes[1])} at talking.py" in found.message


FLOATS = np.ones((4, 8), np.float32)
WIDE = np.ones((4, 257), np.float32)
TO = {"send_to_rank": 1, "recv_from_rank": 1, "pipe_id": 0}
REFUSED: dict[str, tuple[str, Any, Any, dict[str, Any]]] = {
    "src in HBM": ("NK201", tile(FLOATS, "private_hbm"), empty((4, 8)), TO),
    "dst in PSUM": ("NK201", tile(FLOATS), empty((4, 8), memory="psum"), TO),
    "another dtype": ("NK301", tile(FLOATS), empty((4, 8), nl.bfloat16), TO),
    "other partitions": ("NK102", tile(FLOATS), empty((2, 8)), TO),
    "other elements": ("NK109", tile(FLOATS), empty((4, 4)), TO),
    "another layout": ("NK109", tile(FLOATS), empty((4, 2, 4)), TO),
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
        assert [(each.rule, each.severity, each.count) for each in run.findings] == [("NK621", "hint", 2)]

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


def test_a_barrier_at_a_run_time_address_depends_on_it() -> None:
    """The register that says which rows `data` is was set before the barrier; the barrier reads none of the rows."""

    def kernel(x: Any) -> Any:
        out = hbm(x.shape)
        row = nisa.register_alloc()
        nisa.register_move(row, 2)
        nisa.core_barrier(out.ap([[8, 2], [1, 8]], scalar_offset=row), (0, 1))
        if nl.program_id(0) == 0:
            nisa.dma_copy(dst=out, src=x)
        return out

    run = nkitools.simulate(kernel, X, grid=2, rules="report")
    names = [each.name for each in run.instructions]
    assert names == ["register_move", "register_move", "core_barrier", "core_barrier", "dma_copy"]
    first, second = (run.dependences.flow[at].tolist() for at in (2, 3))
    assert sorted([first, second]) == [[0], [1]]
    assert run.findings == []
