"""simulate(kernel, (arguments of rank 0), (arguments of rank 1), ranks=2): arguments, outputs, records, endings."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import collectives as ncc
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import jit
from nkitools.dialects.modern import language as nl
from nkitools.facts import options

X = [np.full((4, 3), rank + 1, np.float32) for rank in range(4)]


@pytest.fixture(autouse=True)
def _no_thread_outlives_its_run() -> Any:
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) == before


@jit
def added(x: Any, factor: Any = 1, ranks: Any = 2) -> Any:
    """The sum over all ranks of x times a factor."""
    buffer = nl.private_hbm if nl.num_programs(0) == 1 else nl.shared_hbm  # as NKI 0.7 has all_reduce
    sent, received = (nl.ndarray(x.shape, x.dtype, buffer=buffer) for _ in range(2))
    if nl.program_id(0) == 0:
        tile = nl.load(x)
        nisa.tensor_scalar(tile, tile, nl.multiply, float(factor))
        nisa.dma_copy(dst=sent, src=tile)
    ncc.all_reduce([sent], [received], ncc.ReplicaGroup([range(ranks)]), nl.add)
    return received


class TestArguments:
    """One tuple or list a rank; keywords for all."""

    def test_each_rank_has_its_own(self) -> None:
        """By position, with keywords for all ranks."""
        run = nkitools.simulate(added, (X[0], 1), [X[1], 10], ranks=2)
        assert isinstance(run.outputs, tuple)
        assert [float(each[0, 0]) for each in run.outputs] == [21, 21]
        run = nkitools.simulate(added, (X[0],), (X[1],), ranks=np.int64(2), factor=3)
        assert [float(each[0, 0]) for each in run.outputs] == [9, 9]

    def test_one_rank_is_a_group_of_one(self) -> None:
        """And its outputs a tuple of one."""
        (only,) = nkitools.simulate(lambda x: added(x, 1, 1), (X[2],), ranks=1).outputs
        np.testing.assert_array_equal(only, X[2])

    @pytest.mark.parametrize(
        ("ranks", "given", "error", "sentence"),
        [
            (2, (X[0], X[1]), TypeError, "the arguments of rank 0 must be a tuple or a list, they are ndarray"),
            (2, ((X[0],), X[1]), TypeError, "rank 1 must be a tuple or a list"),
            (2, ((X[0],),), ValueError, "as many tuples of arguments, there are 1"),
            (2, ((X[0],), (X[1],), (X[2],)), ValueError, "there are 3"),
            (0, (), ValueError, "at least 1"),
            (True, ((X[0],),), TypeError, "integer"),
            (2.0, ((X[0],), (X[1],)), TypeError, "integer"),
        ],
    )
    def test_other_forms(self, ranks: Any, given: Any, error: type[Exception], sentence: str) -> None:
        """What is wrong, and the form of a call."""
        with pytest.raises(error, match=sentence) as raised:
            nkitools.simulate(added, *given, ranks=ranks)
        assert "Call nkitools.simulate(kernel, (arguments of rank 0)" in str(raised.value)

    def test_arguments_that_the_kernel_does_not_take(self) -> None:
        """NK609 says of which rank."""
        with pytest.raises(nkitools.KernelError, match="NK609") as raised:
            nkitools.simulate(added, (X[0],), (X[1], 1, 2, 3), ranks=2)
        assert raised.value.finding.rank == 1

    @pytest.mark.frameworks
    def test_torch_and_jax_in_kind(self) -> None:
        """Each rank's results are of the kind of its arguments."""
        torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
        first, second = nkitools.simulate(
            added, (torch.ones(4, 3),), (jax.numpy.ones((4, 3), "float32"),), ranks=2
        ).outputs
        assert (type(first), float(first[0, 0])) == (torch.Tensor, 2.0)
        assert isinstance(second, jax.Array)

    def test_ranks_of_the_legacy_dialect(self) -> None:
        """NK607: there are no collectives."""
        from nkitools.dialects import legacy

        with pytest.raises(nkitools.NotModelled, match="legacy dialect"):
            nkitools.simulate(legacy.jit(lambda x: x), (X[0],), ranks=1)


class TestMemory:
    """Each rank has an HBM of its own."""

    def test_inputs_are_updated_in_place(self) -> None:
        """Those of each rank, and views of one array as well."""
        table = np.zeros((4, 2, 3), np.float32)

        def kernel(x: Any, value: Any) -> Any:
            tile = nl.ndarray((2, 3), x.dtype, buffer=nl.sbuf)
            nisa.memset(tile, float(value))
            nisa.dma_copy(dst=x, src=tile)

        nkitools.simulate(kernel, *((table[rank], rank) for rank in range(4)), ranks=4, mutates="x")
        assert [set(each.ravel()) for each in table] == [{0.0}, {1.0}, {2.0}, {3.0}]
        columns = np.zeros((2, 12), np.float32)
        nkitools.simulate(
            kernel, *((columns[:, 3 * rank : 3 * rank + 3], rank) for rank in range(4)), ranks=4, mutates="x"
        )
        np.testing.assert_array_equal(columns, np.repeat([[0, 1, 2, 3]], 3).reshape(1, -1).repeat(2, axis=0))

    @pytest.mark.parametrize("by_keyword", [True, False])
    @pytest.mark.parametrize("form", [lambda x: x, lambda x: x.T])
    def test_an_array_of_several_ranks_is_for_reading(self, by_keyword: bool, form: Callable[..., Any]) -> None:
        """Writing it is NK609: on devices each rank has its own. The caller may write it all the same."""
        weights = np.arange(12, dtype=np.float32).reshape(4, 3)

        def kernel(x: Any, w: Any, writes: Any = True) -> Any:
            out = nl.ndarray(w.shape, w.dtype, buffer=nl.shared_hbm)
            nisa.dma_copy(dst=out, src=w)
            if writes:
                nisa.dma_copy(dst=w, src=out)
            return out

        def run(**keywords: Any) -> Any:
            if by_keyword:
                return nkitools.simulate(kernel, (X[0],), (X[1],), w=form(weights), ranks=2, **keywords)
            return nkitools.simulate(kernel, (X[0], form(weights)), (X[1], form(weights)), ranks=2, **keywords)

        for got in run(writes=False).outputs:
            np.testing.assert_array_equal(got, form(weights))
        with pytest.raises(nkitools.KernelError, match="several ranks") as raised:
            run()
        assert (raised.value.finding.rule, raised.value.finding.rank) == ("NK609", 0)
        weights[0, 0] = 5
        assert weights.flags.writeable

    def test_shared_hbm_is_that_of_a_rank(self) -> None:
        """The k-th allocation of both cores is one buffer, and another one on every rank."""

        def kernel(x: Any) -> Any:
            core = nl.program_id(0)
            both = nl.ndarray((2, 3), x.dtype, buffer=nl.shared_hbm)
            nisa.dma_copy(dst=both[nl.ds(core, 1), :], src=x[nl.ds(core, 1), :])
            return both

        run = nkitools.simulate(kernel, *((x,) for x in X), ranks=4, grid=2)
        for got, x in zip(run.outputs, X, strict=True):
            np.testing.assert_array_equal(got, x[:2])

    def test_races_are_those_of_a_rank(self) -> None:
        """NK502 says which rank's cores race."""

        def kernel(x: Any, races: Any) -> Any:
            out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
            tile = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)
            nisa.memset(tile, float(nl.program_id(0)))
            if races or nl.program_id(0) == 0:
                nisa.dma_copy(dst=out, src=tile)
            return out

        with pytest.raises(nkitools.KernelError, match="NK502") as raised:
            nkitools.simulate(kernel, (X[0], False), (X[1], True), ranks=2, grid=2)
        assert raised.value.finding.rank == 1


class TestRecords:
    """What is told of a run says of which rank."""

    @staticmethod
    def talkative(x: Any) -> Any:
        """Prints, and warns of nothing."""
        nl.device_print("x", x)
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=x)
        return out

    def test_prints(self) -> None:
        """With the rank in front."""
        run = nkitools.simulate(self.talkative, (X[0],), (X[1],), ranks=2)
        assert [(each.rank, float(each.value[0, 0])) for each in run.prints] == [(0, 1.0), (1, 2.0)]
        assert run.prints[1].text().startswith("x [rank 1, program 0, test_ranks.py:")

    def test_instructions(self) -> None:
        """Rank after rank, indexed from either end."""
        run = nkitools.simulate(self.talkative, (X[0],), (X[1],), ranks=2)
        assert [(each.name, each.rank) for each in run.instructions] == [("dma_copy", 0), ("dma_copy", 1)]
        assert (len(run.instructions), run.instructions[-1].rank, run.instructions[0].rank) == (2, 1, 0)
        with pytest.raises(IndexError):
            run.instructions[2]

    def test_without_ranks_there_is_none(self) -> None:
        """None, and nothing in the texts."""
        run = nkitools.simulate(self.talkative, X[0])
        assert run.instructions[0].rank is run.prints[0].rank is None
        assert not re.search(r"\brank \d", run.prints[0].text())

    def test_findings(self) -> None:
        """In the text and in the sentence; the second rank's too where findings are collected."""

        def kernel(x: Any) -> Any:
            return nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)

        run = nkitools.simulate(kernel, (X[0],), (X[1],), ranks=2, rules="report")
        assert [(each.rule, each.rank) for each in run.findings] == [("NK403", 0), ("NK403", 1)]
        assert run.findings[1].text().endswith("(rank 1)")
        assert "rank 1" in run.findings[1].sentence()
        (finding,) = nkitools.simulate(kernel, X[0], rules="report").findings
        assert finding.rank is None
        assert not re.search(r"\brank \d", finding.text() + finding.sentence())

    def test_random_numbers_differ(self) -> None:
        """An unseeded engine is as if seeded with the number of its program, counted over all ranks."""

        def kernel(x: Any) -> Any:
            tile = nl.ndarray((1, 4), nl.uint32, buffer=nl.sbuf)
            nisa.rng(tile)
            out = nl.ndarray((2, 4), nl.uint32, buffer=nl.shared_hbm)
            nisa.dma_copy(dst=out[nl.ds(nl.program_id(0), 1), :], src=tile)
            return out

        drawn = np.concatenate(nkitools.simulate(kernel, (X[0],), (X[1],), ranks=2, grid=2).outputs)
        assert len(np.unique(drawn, axis=0)) == 4


class TestEndings:
    """One rank's end is the run's."""

    @pytest.mark.parametrize("seed", [None, "1", "2"])
    def test_an_exception_of_one_rank(self, seed: str | None) -> None:
        """It passes through, however many wait."""

        def kernel(x: Any, fails: Any) -> Any:
            if fails:
                raise LookupError("the kernel's own")
            return added(x, 1, 4)

        with options.override(schedule_seed=seed), pytest.raises(LookupError, match="the kernel's own"):
            nkitools.simulate(kernel, *((x, rank == 2) for rank, x in enumerate(X)), ranks=4)

    def test_a_launch_inside_a_kernel(self) -> None:
        """NK610."""
        with pytest.raises(nkitools.KernelError, match="NK610"):
            nkitools.simulate(lambda x: nkitools.simulate(added, (x,), ranks=1), X[0])

    @pytest.mark.parametrize("grid", [1, 2])
    @pytest.mark.parametrize("seed", range(8))
    def test_every_order_gives_one_result(self, seed: int, grid: int) -> None:
        """A ring of steps between which ranks are interrupted."""

        def kernel(x: Any) -> Any:
            ring = ncc.ReplicaGroup([range(4)])
            here, there = (nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm) for _ in range(2))
            core = nl.program_id(0)
            half = nl.ds(core * 2, 2) if nl.num_programs(0) == 2 else slice(0, 4)
            total = nl.load(x[half, :])
            nisa.dma_copy(dst=here[half, :], src=x[half, :])
            for _ in range(3):
                ncc.collective_permute_implicit([[here]], [[there]], ring)
                tile = nl.load(there[half, :])
                nisa.tensor_tensor(total, total, tile, nl.add)
                here, there = there, here
            out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
            nisa.dma_copy(dst=out[half, :], src=total)
            return out

        with options.override(schedule_seed=str(seed)):
            run = nkitools.simulate(kernel, *((x,) for x in X), ranks=4, grid=grid)
        assert run.findings == []
        assert all((got == 10).all() for got in run.outputs)


def test_the_fixture_takes_ranks(run_kernel: Any) -> None:
    """run_kernel passes them on, in simulation."""
    outputs = run_kernel(added, (X[0],), (X[1],), ranks=2)
    assert [float(each[0, 0]) for each in outputs] == [3.0, 3.0]


@pytest.mark.process
def test_public_use_of_the_stand_in() -> None:
    """`import nki.collectives`, as authors write it."""
    script = (
        "import nkitools, numpy as np; nkitools.install_stand_in()\n"
        "import nki.collectives as ncc\n"
        "from nki.collectives import ReplicaGroup\n"
        "assert ReplicaGroup([[0]]) and callable(ncc.all_gather_v)\n"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
