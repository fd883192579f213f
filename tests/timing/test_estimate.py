"""Estimates of whole kernels: what their parts must satisfy, and times that are published."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import neuronxcc.nki.language as legacy_language
import nki
import nki.collectives as collectives
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest
from neuronxcc import nki as legacy

import nkitools
from nkitools.facts.generations import GENERATIONS
from nkitools.record.columns import Columns
from nkitools.record.run import Run
from nkitools.timing.durations import DMA, ENGINES
from nkitools.timing.estimate import estimate, latency_of
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
    """No instruction starts before the instructions have ended that wrote what it reads or overwrites, or read that.

    A matmul that adds to another one's result follows it in the array, before that has left it.
    """
    run = product_run()
    made, kinds = timeline(run).schedule, timeline(run).kinds
    freed = made.begins + made.occupied
    for kind in (run.dependences.flow, run.dependences.output, run.dependences.anti):
        for position in range(len(kind)):
            sources = kind[position]
            sources = sources[sources >= 0]
            follows = (kinds[position] == 0) & (kinds[sources] == 0)
            # Rounding: the time until a result has left the array is added and taken off again.
            assert (made.starts[position] >= np.where(follows, freed[sources], made.ends[sources]) - 1e-6).all()


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
    assert found.latency_us == latency_of(run)
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
    assert "nc_matmul of line" in found.waits_for  # which still reads the tile that is filled next


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
    with pytest.raises(ValueError, match="no instructions"):
        latency_of(Run(kernel="k", target="hw", chip="trn2"))
    with pytest.raises(ValueError, match="no instructions"):
        Run(kernel="k", target="pallas-interpret").estimate()


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


@legacy.jit
def reloading(a: Any, b: Any) -> Any:
    """Return a.T @ b by tiles of half the partitions, whose operands are loaded again for each of them."""
    out = legacy_language.ndarray((a.shape[1], b.shape[1]), dtype=a.dtype, buffer=legacy_language.shared_hbm)
    for m in legacy_language.affine_range(a.shape[1] // 128):
        total = legacy_language.zeros((128, 512), legacy_language.float32, buffer=legacy_language.psum)
        for k in legacy_language.affine_range(a.shape[0] // 64):
            rows = legacy_language.ds(k * 64, 64)
            left = legacy_language.load(a[rows, legacy_language.ds(m * 128, 128)])
            total += legacy_language.matmul(left, legacy_language.load(b[rows, :]), transpose_x=True)
        result = legacy_language.copy(total, dtype=a.dtype)
        legacy_language.store(out[legacy_language.ds(m * 128, 128), :], value=result)
    return out


@pytest.mark.parametrize(("length", "left_out"), [(1024, 9), (8192, 0)])
def test_the_legacy_compiler_leaves_out_the_loads_whose_elements_are_there(length: int, left_out: int) -> None:
    """All but the first of ten loads of b where it fits, 16 x 2 KiB of a partition; none where it has 128 x 2 KiB."""
    run = nkitools.simulate(reloading, np.ones((length, 1280), np.float32), np.ones((length, 512), np.float32))
    found, as_written = run.estimate(), estimate(run, as_written=True)
    assert found.loaded_bytes == length * 4 * (1280 + 10 * 512)
    assert found.left_out_bytes == length * 4 * left_out * 512
    assert as_written.left_out_bytes == 0
    dma = [next(use.busy_us for use in each.engines if use.engine == "dma") for each in (found, as_written)]
    assert (dma[0] < 0.5 * dma[1]) is bool(left_out)
    assert ("loads counted once" in str(found)) is bool(left_out)


def test_bounds_are_named_and_the_largest_gaps_have_lines() -> None:
    """Each bound worked out by hand; at most three gaps, the largest first, none beyond the latency."""
    found = product_run(1024).estimate()
    bounds, nbytes = found.named_bounds, 2 * 1024 * 1024
    assert bounds["memory as written"] == pytest.approx(11 * nbytes / TRN2.hbm_bytes_per_second * 1e6)
    assert bounds["memory with each byte once"] == pytest.approx(3 * nbytes / TRN2.hbm_bytes_per_second * 1e6)
    assert bounds["compute, ideal flops"] == pytest.approx(2 * 1024**3 / (2 * 128 * 128 * 2.4e3))
    busy = {use.engine: use.busy_us for use in found.engines}
    assert bounds["compute, useful flops"] == busy["tensor"]
    assert bounds["compute, vector engine"] == busy["vector"] > 0
    assert bounds["perfect pipeline"] == found.busiest_us
    assert bounds["launch"] == found.launch_us
    shares = [gap.us for gap in found.gaps]
    assert 0 < len(shares) <= 3
    assert shares == sorted(shares, reverse=True)
    assert all(0 < gap.us < found.latency_us and gap.share == gap.us / found.latency_us for gap in found.gaps)
    assert found.gaps[0].file == __file__


@nki.jit
def few_matmuls(a: Any, b: Any, count: int) -> Any:
    """Return the sum of as many products, one after the other."""
    left, right = (nl.ndarray(each.shape, dtype=each.dtype, buffer=nl.sbuf) for each in (a, b))
    nisa.dma_copy(dst=left, src=a)
    nisa.dma_copy(dst=right, src=b)
    total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    for k in range(count):
        nisa.nc_matmul(dst=total, stationary=left, moving=right, accumulate=k > 0)
    result = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=total)
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=result)
    return out


@pytest.mark.parametrize(("rows", "warms"), [(128, True), (64, False)])
def test_matmuls_go_at_half_of_the_clock_until_the_engine_was_busy(rows: int, warms: bool) -> None:
    """A full array is fast after a window or two of 3.4 us, as profiles show; half of its rows never make it so."""
    a, b = (np.ones((rows, columns), ml_dtypes.bfloat16) for columns in (128, 512))
    run = nkitools.simulate(few_matmuls, a, b, 100, chip="trn2")
    made = timeline(run)
    each = made.schedule.occupied[made.kinds == 0]
    each[0] -= 2 * 67  # its semaphores of two transfers, which take as long by the slow clock
    each = np.sort(each)
    cold, warm = 2 * (10.5 + 512 * 0.4023), 10.5 + 512 * 0.4023
    assert each[-1] == pytest.approx(cold)
    assert each[0] == pytest.approx(warm if warms else cold)
    assert (each < 1.5 * warm).sum() == pytest.approx(88 if warms else 0, abs=6)
