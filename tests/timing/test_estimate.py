"""Estimates of whole kernels: what their parts must satisfy, and times that are published."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import nki
import nki.collectives as collectives
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest

import nkitools
from nkitools.facts.generations import GENERATIONS
from nkitools.record.columns import Columns
from nkitools.record.run import Run
from nkitools.timing.durations import DMA, ENGINES
from nkitools.timing.knobs import knobs_of
from nkitools.timing.timeline import Timeline, timeline_of

TRN2 = GENERATIONS["trn2"]
KNOBS = knobs_of(TRN2)


@nki.jit
def product(a: Any, b: Any) -> Any:
    """Return a.T @ b by tiles, whose operands are loaded again for each of them."""
    out = nl.ndarray((a.shape[1], b.shape[1]), dtype=a.dtype, buffer=nl.shared_hbm)
    for m in range(a.shape[1] // 128):
        for n in range(b.shape[1] // 512):
            total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
            for k in range(a.shape[0] // 128):
                x = nl.ndarray((128, 128), dtype=a.dtype, buffer=nl.sbuf)
                y = nl.ndarray((128, 512), dtype=a.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=x, src=a[k * 128 : (k + 1) * 128, m * 128 : (m + 1) * 128])
                nisa.dma_copy(dst=y, src=b[k * 128 : (k + 1) * 128, n * 512 : (n + 1) * 512])
                nisa.nc_matmul(dst=total, stationary=x, moving=y)
            result = nl.ndarray((128, 512), dtype=a.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=result, src=total)
            nisa.dma_copy(dst=out[m * 128 : (m + 1) * 128, n * 512 : (n + 1) * 512], src=result)
    return out


@nki.jit
def doubled(x: Any) -> Any:
    """Return x + x, by columns that are too wide for many of them to be in SBUF at once."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for n in range(x.shape[1] // 8192):
        tile = nl.ndarray((128, 8192), dtype=x.dtype, buffer=nl.sbuf)
        total = nl.ndarray((128, 8192), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[:, n * 8192 : (n + 1) * 8192])
        nisa.tensor_tensor(dst=total, data1=tile, data2=tile, op=nl.add)
        nisa.dma_copy(dst=out[:, n * 8192 : (n + 1) * 8192], src=total)
    return out


def product_run(size: int = 512, chip: str = "trn2") -> Run:
    data = np.ones((size, size), ml_dtypes.bfloat16)
    return nkitools.simulate(product, data, data.copy(), chip=chip)


def timeline(run: Run) -> Timeline:
    return timeline_of(run, TRN2, KNOBS)


def test_every_dependence_of_a_run_holds_in_its_timeline() -> None:
    """No instruction starts before the instructions have ended that wrote what it reads or overwrites, or read that."""
    run = product_run()
    made = timeline(run).schedule
    for kind in (run.dependences.flow, run.dependences.output, run.dependences.anti):
        for position in range(len(kind)):
            sources = kind[position]
            assert (made.starts[position] >= made.ends[sources[sources >= 0]]).all()


def test_tiles_in_sbuf_have_room_at_every_time() -> None:
    """The tiles between their first write and their last use never take more than SBUF has."""
    run = nkitools.simulate(doubled, np.ones((128, 8192 * 12), np.float32), chip="trn2")
    made, columns = timeline(run).schedule, Columns(run.all_records[0])
    tiles = {n: each.partition_bytes for n, each in run.all_records[0].storages.items() if each.memory == "SBUF"}
    assert sum(tiles.values()) > 3 * TRN2.sbuf_usable_bytes
    spans = []
    for storage, nbytes in tiles.items():
        uses = columns.positions[columns.storages == storage]
        spans.append((made.starts[uses].min(), made.ends[uses].max(), nbytes))
    for now, _, _ in spans:
        assert sum(nbytes for begins, ends, nbytes in spans if begins <= now < ends) <= TRN2.sbuf_usable_bytes


def test_a_run_of_a_file_has_the_same_estimate(tmp_path: Any) -> None:
    """What the estimate reads is saved with a run."""
    run = product_run()
    run.save(tmp_path / "it.run")
    assert nkitools.load_run(tmp_path / "it.run").estimate() == run.estimate()


def test_an_estimate_has_its_bounds_and_adds_up() -> None:
    """The latency is the launch and the span of the schedule, between the busiest engine and all in series."""
    run = product_run(1024)
    found, made = run.estimate(), timeline(run)
    assert found.latency_us == pytest.approx(made.span_ns / 1e3 + KNOBS.launch_us)
    assert found.busiest_us == max(use.busy_us for use in found.engines)
    assert found.busiest_us < found.latency_us - found.launch_us < found.serial_us
    assert found.lower_us < found.latency_us < found.upper_us
    assert sum(line.us for line in found.critical_path) == pytest.approx(made.span_ns / 1e3)
    shares = {use.engine: use.share for use in found.engines}
    assert shares["gpsimd"] == 0 < shares["tensor"] < 1


def test_flops_and_traffic_are_those_of_the_kernel() -> None:
    """Two flops a product; a is read once for each 512 columns of the result, b once for each 128 rows."""
    found = product_run(1024).estimate()
    assert found.roofline.flops == 2 * 1024**3
    nbytes = 2 * 1024 * 1024
    flow = {
        each.tensor: (each.read_bytes // nbytes, each.written_bytes // nbytes, each.loads) for each in found.traffic
    }
    assert flow == {"a": (2, 0, 2.0), "b": (8, 0, 8.0), "out": (0, 1, 0.0)}
    assert found.roofline.hbm_bytes == 11 * nbytes
    assert found.roofline.intensity == pytest.approx(2 * 1024**3 / (11 * nbytes))


def test_the_critical_path_names_the_authors_lines() -> None:
    """The first line of the path is one of the kernel's, with what it waits for."""
    found = product_run(1024).estimate().critical_path[0]
    first = product.__wrapped__.__code__.co_firstlineno
    assert found.file == __file__
    assert first < found.line < first + 18
    assert found.instruction == "dma_copy"
    assert "dma_copy of line" in found.waits_for


def test_loads_and_computation_overlap() -> None:
    """Computation begins after the first load, and goes on beside later ones: half of the time in series is enough."""
    run = product_run(1024)
    made = timeline(run)
    both = made.work.engines % len(ENGINES) != DMA
    first_load_ends = made.schedule.ends[~both].min()
    assert made.schedule.starts[both].min() >= first_load_ends
    assert made.schedule.starts[both].max() < made.schedule.ends[~both].max()
    assert made.span_ns < 0.5 * made.work.durations.sum()


def test_newest_chip_is_not_calibrated_and_says_so() -> None:
    """No latency of NeuronCore-v4 is published: its band is wider, and the estimate says why."""
    calibrated, other = product_run().estimate(), product_run(chip="trn3").estimate()
    assert calibrated.is_calibrated
    assert not other.is_calibrated
    assert "not calibrated" in other.how_good
    assert other.upper_us / other.latency_us > calibrated.upper_us / calibrated.latency_us


def test_a_run_without_instructions_has_no_estimate() -> None:
    """A run that nkitools has not simulated is refused with a sentence."""
    with pytest.raises(ValueError, match="no instructions"):
        Run(kernel="k", target="hw", chip="trn2").estimate()


@nki.jit
def filled(x: Any) -> Any:
    """Return x + 1 twice, by the Vector Engine as it is asked for, or by any."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    for _ in range(8):
        asked = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=asked, data=tile, op0=nl.add, operand0=1.0, engine=nisa.vector_engine)
        free = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=free, data=asked, op0=nl.add, operand0=1.0)
    nisa.dma_copy(dst=out, src=free)
    return out


def test_only_instructions_without_an_engine_are_shared() -> None:
    """What asks for the Vector Engine stays there; what asks for none goes to the engine with less to do."""
    run = nkitools.simulate(filled, np.ones((128, 512), np.float32), chip="trn2")
    engines = timeline(run).kinds
    names = [ENGINES[each] for each in engines.tolist()]
    assert (names[0], names[-1], set(names[1:-1:2])) == ("dma", "dma", {"vector"})
    # On the Scalar Engine a tile takes 1.4 times as long as on the Vector Engine, by the laws of both.
    assert names[2:-1:2].count("scalar") in (6, 7)


@nki.jit
def reduced(x: Any) -> Any:
    """Return the sum of x over two ranks."""
    mine = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.private_hbm)
    total = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.private_hbm)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=mine, src=tile)
    group = collectives.ReplicaGroup([[0, 1]])
    collectives.all_reduce(srcs=[mine], dsts=[total], replica_group=group, op=nl.add)
    nisa.dma_copy(dst=out, src=total)
    return out


def test_ranks_wait_for_what_the_others_send() -> None:
    """Each rank has a core of its own; its collective starts when both ranks have stored what they send."""
    data = np.ones((128, 512), np.float32)
    run = nkitools.simulate(reduced, (data,), (data,), ranks=2, chip="trn2")
    made = timeline(run)
    names = [each.name for each in run.instructions]
    meetings = [at for at, name in enumerate(names) if name == "all_reduce"]
    stores = [at for at in range(len(names)) if at + 1 in meetings]
    assert made.cores == 2
    assert made.schedule.starts[meetings].min() >= made.schedule.ends[stores].max()


@nki.jit
def on_cores(x: Any) -> Any:
    """Return x + 1; each core adds to its own half."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    half = x.shape[1] // nl.num_programs(0)
    mine = slice(nl.program_id(0) * half, (nl.program_id(0) + 1) * half)
    tile = nl.ndarray((128, half), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[:, mine])
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1.0)
    nisa.dma_copy(dst=out[:, mine], src=tile)
    return out


def test_two_cores_work_at_the_same_time() -> None:
    """Each program of a modern kernel has a core, with half of the work and engines of its own."""
    data = np.ones((128, 8192), np.float32)
    one, two = (nkitools.simulate(on_cores, data, grid=cores, chip="trn2") for cores in (1, 2))
    assert {use.core for use in two.estimate().engines} == {0, 1}
    assert timeline(two).span_ns < 0.7 * timeline(one).span_ns
