"""A run as a trace of Perfetto: parsed back with the published classes."""

from __future__ import annotations

import builtins
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.record.run import Run
from nkitools.report.perfetto import timeline as trace_of
from nkitools.report.perfetto_order import STEP
from tests.history.test_races import line_of

perfetto_trace_pb2 = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
BEGIN, END, INSTANT = (
    getattr(perfetto_trace_pb2.TrackEvent, f"TYPE_{name}") for name in ("SLICE_BEGIN", "SLICE_END", "INSTANT")
)
X = np.ones((256, 8), np.float32)
timeline = partial(trace_of, order=True)


def nested(x: Any) -> Any:
    """Two loops, one in the other, and a print in the outer one."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for m in nl.affine_range(2):
        tile = nl.load(x[m * 128 : m * 128 + 128, :])
        nl.device_print("tile", tile)
        for k in nl.sequential_range(3):
            nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=float(k))
        nl.store(out[m * 128 : m * 128 + 128, :], tile)
    return out


class Trace:
    """A trace as it is read: tracks, slices by track with what is open around them, instants."""

    def __init__(self, content: bytes) -> None:
        packets = perfetto_trace_pb2.Trace.FromString(content).packet
        self.tracks = {
            packet.track_descriptor.uuid: packet.track_descriptor
            for packet in packets
            if packet.HasField("track_descriptor")
        }
        self.slices: dict[str, list[Any]] = defaultdict(list)  # (begin, end, event, depth) in the order of their begin
        self.instants: dict[str, list[Any]] = defaultdict(list)
        opened: dict[int, list[Any]] = defaultdict(list)
        for packet in packets:
            if not packet.HasField("track_event"):
                continue
            assert packet.trusted_packet_sequence_id, "events of no sequence are dropped by the viewer"
            event, path = packet.track_event, self.path(packet.track_event.track_uuid)
            if event.type == BEGIN:
                entry = [packet.timestamp, None, event, len(opened[event.track_uuid])]
                opened[event.track_uuid].append(entry)
                self.slices[path].append(entry)
            elif event.type == END:
                entry = opened[event.track_uuid].pop()
                entry[1] = packet.timestamp
                assert entry[0] < entry[1]
            else:
                assert event.type == INSTANT
                self.instants[path].append((packet.timestamp, event))
        assert not any(opened.values()), "every slice is closed"

    def path(self, uuid: int) -> str:
        """The names of a track and those around it: its parents are there."""
        track = self.tracks[uuid]
        above = self.path(track.parent_uuid) + " / " if track.parent_uuid else ""
        return above + track.name

    @property
    def instructions(self) -> list[Any]:
        """All slices of engines by their position."""
        found = [each for path, slices in self.slices.items() if not path.endswith("loops") for each in slices]
        return sorted(found, key=lambda each: each[0])


def told(event: Any) -> dict[str, Any]:
    return {each.name: each.string_value or each.int_value for each in event.debug_annotations}


def through_a_file(run: Run) -> Run:
    return Run.from_json(run.to_json())


@pytest.mark.parametrize("change", [lambda run: run, through_a_file])
def test_tracks_slices_and_nesting(change: Any) -> None:
    """One slice an instruction on its engine's track, one step long, in their order; loops inside of loops; a print."""
    run = change(nkitools.simulate(nested, X))
    trace = Trace(timeline(run))
    root = "nested on trn2 (order, not time)"
    names = sorted(trace.slices)
    assert names == [f"{root} / DMA queues", f"{root} / Vector Engine", f"{root} / loops"]
    assert [each[2].name for each in trace.instructions] == [one.name for one in run.instructions]
    assert [each[:2] for each in trace.instructions] == [[at * STEP, (at + 1) * STEP] for at in range(10)]
    assert len(trace.slices[f"{root} / Vector Engine"]) == 6
    loops = [(begin // STEP, end // STEP, event.name, depth) for begin, end, event, depth in trace.slices[names[2]]]
    assert loops == [
        (0, 5, "m=0", 0),
        (1, 2, "k=0", 1),
        (2, 3, "k=1", 1),
        (3, 4, "k=2", 1),
        (5, 10, "m=1", 0),
        (6, 7, "k=0", 1),
        (7, 8, "k=1", 1),
        (8, 9, "k=2", 1),
    ]
    prints = trace.instants[f"{root} / device prints"]
    assert [(at // STEP, event.name) for at, event in prints] == [(1, "tile"), (6, "tile")]
    assert told(prints[0][1])["value"] == run.prints[0].text()


def test_it_is_said_to_be_order_and_not_time() -> None:
    """In the name of the track around all others, and in its description."""
    trace = Trace(timeline(nkitools.simulate(nested, X)))
    (root,) = (track for track in trace.tracks.values() if not track.parent_uuid)
    assert "order, not time" in root.name
    assert "say nothing about how long" in root.description
    ranks = {track.name: track.sibling_order_rank for track in trace.tracks.values() if track.parent_uuid == root.uuid}
    assert sorted(ranks, key=ranks.__getitem__) == ["loops", "device prints", "Vector Engine", "DMA queues"]


def test_a_slice_tells_its_operands_line_and_counters() -> None:
    """As a person reads them."""
    run = nkitools.simulate(nested, X)
    event = Trace(timeline(run)).instructions[7][2]
    line = line_of(nested, "tensor_scalar")
    assert told(event) == {
        "at": f"{__file__}:{line}",
        "writes": "tile (SBUF, float32 [128, 8])",
        "reads": "tile (SBUF, float32 [128, 8])",
        "loops": "m=1, k=1",
        "instruction": 7,
    }
    assert (event.source_location.file_name, event.source_location.line_number) == (__file__, line)


@pytest.mark.parametrize("keywords", [{}, {"grid": 2}])
def test_flows_are_the_dependences(keywords: dict[str, Any]) -> None:
    """Each arrow begins at one instruction, ends at one that comes later, and there is one for each dependence."""
    run = nkitools.simulate(nested, X, rules="off", **keywords)
    begins, ends = {}, {}
    for position, (_, _, event, _) in enumerate(Trace(timeline(run)).instructions):
        for number in event.flow_ids:
            assert begins.setdefault(number, position) == position
        for number in event.terminating_flow_ids:
            assert ends.setdefault(number, position) == position
    assert begins.keys() == ends.keys()
    assert run.record is not None
    flow = run.dependences.flow
    expected = {(writer, at) for at in range(len(flow)) for writer in flow[at].tolist() if writer >= 0}
    assert {(begins[number], ends[number]) for number in begins} == expected
    assert len(begins) == len(expected) >= 8


def test_programs_and_ranks_have_tracks_of_their_own() -> None:
    """Ranks around programs around engines; a rank counts its own steps."""
    run = nkitools.simulate(nested, (X,), (X,), ranks=2, grid=2, rules="off")
    trace = Trace(timeline(run))
    root = "nested on trn2 (order, not time)"
    assert {path for path in trace.slices if path.endswith("Vector Engine")} == {
        f"{root} / rank {rank} / program {program} / Vector Engine" for rank in (0, 1) for program in (0, 1)
    }
    for rank in (0, 1):
        times = sorted(
            each[0] // STEP
            for path, slices in trace.slices.items()
            if f"rank {rank} " in path and not path.endswith("loops")
            for each in slices
        )
        assert times == list(range(20))


def gathered(x: Any) -> Any:
    """One instruction that reads what fifty others wrote."""
    out = nl.ndarray((128, 50), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 50), dtype=x.dtype)
    for column in range(50):
        nisa.memset(tile[:, column : column + 1], 1.0)
    nisa.dma_copy(dst=out, src=tile)
    return out


def test_arrows_that_are_left_out_are_counted() -> None:
    """No more than 32 lead into one instruction: those of the latest writers."""
    event = Trace(timeline(nkitools.simulate(gathered, X[:128]))).instructions[-1][2]
    assert len(event.terminating_flow_ids) == 32
    assert told(event)["arrows left out"] == 18


def test_what_has_no_instructions_has_no_timeline(tmp_path: Path) -> None:
    """A device's run; a file is not written then."""
    path = tmp_path / "x.pftrace"
    with pytest.raises(ValueError, match="the run of giou on neuron has no instructions"):
        nkitools.save_timeline(Run("giou", "neuron"), path)
    assert not path.exists()


def test_the_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the extra that brings it."""
    imported = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("perfetto"):
            raise ModuleNotFoundError(f"No module named {name!r}", name="perfetto")
        return imported(name, *args, **kwargs)

    run = nkitools.simulate(nested, X)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'nkitools\[perfetto\]'"):
        timeline(run)
