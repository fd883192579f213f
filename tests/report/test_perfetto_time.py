"""The trace in estimated time: what the schedule says, parsed back with the published classes."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.record.run import Run
from nkitools.report.page.page_data import Gathering
from nkitools.report.perfetto import timeline

perfetto_trace_pb2 = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
X = np.ones((512, 512), np.float32)
TRACKS = {"tensor": "Tensor Engine", "vector": "Vector Engine", "scalar": "Scalar Engine", "gpsimd": "GpSimd Engine",
          "sync": "Sync Engine", "dma": "DMA engines"}  # fmt: skip


def pipelined(x: Any) -> Any:
    """Loads, work of three engines and stores, tile by tile, which overlap; each program has rows of its own."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    programs, mine = nl.num_programs(), nl.program_id(0)
    for m in nl.affine_range(4 // programs):
        rows = nl.ds((m * programs + mine) * 128, 128)
        tile = nl.load(x[rows, :])
        nl.device_print("tile", tile[0:1, 0:2])
        turned = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.psum)
        for column in range(4):
            part = nl.ds(column * 128, 128)
            nisa.nc_transpose(dst=turned[:, part], data=tile[:, part])
        nisa.tensor_copy(dst=tile, src=turned, engine=nisa.vector_engine)
        nisa.activation(dst=tile, op=nl.exp, data=tile)
        nl.store(out[rows, :], tile)
    return out


class Trace:
    """A trace as it is read: slices and counters by process and track, flows."""

    def __init__(self, content: bytes) -> None:
        kinds = perfetto_trace_pb2.TrackEvent
        packets = perfetto_trace_pb2.Trace.FromString(content).packet
        self.tracks = {each.track_descriptor.uuid: each.track_descriptor for each in packets}
        self.slices: dict[tuple[str, str], list[Any]] = defaultdict(list)
        self.counters: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
        self.instants: dict[tuple[str, str], list[Any]] = defaultdict(list)
        self.begins: dict[int, Any] = {}
        self.ends: dict[int, list[Any]] = defaultdict(list)
        for packet in packets:
            if not packet.HasField("track_event"):
                continue
            event, at = packet.track_event, packet.timestamp
            track = self.tracks[event.track_uuid]
            place = self.tracks[track.parent_uuid].process.process_name, track.name
            if event.type == kinds.TYPE_COUNTER:
                self.counters[place].append((at, event.counter_value))
            elif event.type == kinds.TYPE_INSTANT:
                self.instants[place].append((at, event))
            elif event.type == kinds.TYPE_SLICE_BEGIN:
                self.slices[place].append([at, None, event])
                for number in event.flow_ids:
                    self.begins[number] = self.slices[place][-1]
                for number in event.terminating_flow_ids:
                    self.ends[number].append(self.slices[place][-1])
            else:
                assert self.slices[place][-1][1] is None, "a slice ends before the next one of its track begins"
                self.slices[place][-1][1] = at


@pytest.fixture(scope="module", params=[1, 2])
def run(request: pytest.FixtureRequest) -> Run:
    """A run on one core, and on two."""
    return nkitools.simulate(pipelined, X, grid=request.param)


@pytest.fixture(scope="module")
def trace(run: Run) -> Trace:
    """Its trace, by way of a file's form."""
    return Trace(timeline(Run.from_json(run.to_json())))


def test_the_page_shows_the_same_times(run: Run, trace: Trace) -> None:
    """Start and duration of each instruction, to the nanosecond: of a transfer those of its slice on a queue."""
    shown = Gathering(run, None).columns
    queued = [name for _, name in trace.slices if name.startswith("DMA queue")]
    engines = set(TRACKS.values()) - {TRACKS["dma"]} | set(queued)
    traced = sorted(
        (at, end - at) for (_, name), slices in trace.slices.items() if name in engines for at, end, _ in slices
    )
    assert traced == sorted(zip(shown["time.start"].tolist(), shown["time.duration"].tolist(), strict=True))
    assert len(traced) == len(run.instructions)


def test_no_engine_does_two_things(trace: Trace) -> None:
    """Slices of a track follow each other, those of the DMA queues, too."""
    assert len(trace.slices) >= 6
    for slices in trace.slices.values():
        assert all(begin <= end for begin, end, _ in slices)
        assert all(one[1] <= other[0] for one, other in pairwise(slices))


def test_slices_sum_to_the_utilisation(run: Run, trace: Trace) -> None:
    """Of each engine of each core, up to a nanosecond an instruction."""
    estimate = run.estimate()
    for use in estimate.engines:
        name = f"pipelined on trn2: core {use.core} (estimated time)"
        slices = trace.slices.get((name, TRACKS[use.engine]), [])
        total = sum(end - begin for begin, end, _ in slices)
        assert total == pytest.approx(1e3 * use.busy_us, abs=len(slices))
    last = max(end for slices in trace.slices.values() for _, end, _ in slices)
    assert last == pytest.approx(1e3 * (estimate.latency_us - estimate.launch_us), abs=1)


def test_work_overlaps_and_every_instruction_is_there(run: Run, trace: Trace) -> None:
    """Engines work side by side; a transfer has a slice of its engines and one of its queue."""
    spans = sorted((begin, end) for slices in trace.slices.values() for begin, end, _ in slices)
    assert any(one[1] > other[0] for one, other in pairwise(spans))
    names = sorted(
        event.name for (_, track), each in trace.slices.items() for *_, event in each if "queue" not in track
    )
    assert names == sorted(one.name for one in run.instructions)
    transfers = sum(len(each) for (_, track), each in trace.slices.items() if "queue" in track)
    assert transfers == names.count("dma_copy")


def test_arrows_lead_to_what_waits(trace: Trace) -> None:
    """From another engine; what waits starts when the other one has ended or later."""
    assert trace.begins.keys() == trace.ends.keys()
    assert len(trace.begins) >= 8
    for number, begin in trace.begins.items():
        assert all(each[0] >= begin[0] for each in trace.ends[number])


def test_counters_return_to_nothing(run: Run, trace: Trace) -> None:
    """Bytes of a partition, from the first use of a tile to its last one; transfers under way."""
    for core in range(1 + max(use.core for use in run.estimate().engines)):
        process = f"pipelined on trn2: core {core} (estimated time)"
        sbuf, psum = (trace.counters[process, f"{memory} of a partition"] for memory in ("SBUF", "PSUM"))
        assert max(value for _, value in sbuf) >= 2048
        assert max(value for _, value in psum) % 2048 == 0
        assert sbuf[-1][1] == psum[-1][1] == trace.counters[process, "transfers under way"][-1][1] == 0
        prints = trace.instants[process, "device prints"]
        assert [event.name for _, event in prints] == ["tile"] * len(prints)
    assert sum(len(each) for each in trace.instants.values()) == len(run.prints)


def test_ranks_are_processes_and_a_trace_is_the_same_each_time() -> None:
    """With the number of their core."""
    run = nkitools.simulate(pipelined, (X,), (X,), ranks=2)
    names = {process for process, _ in Trace(timeline(run)).slices}
    assert names == {f"pipelined on trn2: rank {rank}, core 0 (estimated time)" for rank in (0, 1)}
    assert timeline(run) == timeline(run)
