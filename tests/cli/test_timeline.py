"""`nkitools timeline`: a saved run for the viewer of Perfetto."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import nkitools
from nkitools.cli import main
from nkitools.record.run import Run
from tests.record.test_record import X, row_maxima


@pytest.fixture(autouse=True)
def _own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory of the test's own, with a saved run in it."""
    monkeypatch.chdir(tmp_path)
    nkitools.simulate(row_maxima, X).save("run.json")


def timeline(*args: str) -> Result:
    return CliRunner().invoke(main, ["timeline", *args], catch_exceptions=False)


@pytest.mark.parametrize(("args", "name"), [((), "run.pftrace"), (("-o", "other.bin"), "other.bin")])
def test_a_trace_is_written(args: tuple[str, ...], name: str) -> None:
    """Beside the run unless a file is named; what to do with it is said, and what its times are."""
    pb = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    done = timeline(*args, "run.json")
    assert done.exit_code == 0
    assert done.stderr == f"nkitools: wrote {name} (estimated time); open it at https://ui.perfetto.dev\n"
    events = [each.track_event for each in pb.Trace.FromString(Path(name).read_bytes()).packet]
    copies = ["dma_copy"] * 2  # on the track of the DMA engines, and on that of a queue
    assert [each.name for each in events if each.name] == [*copies, "tensor_reduce", *copies]
    done = timeline("--order", "run.json")
    assert done.stderr == "nkitools: wrote run.pftrace (order, not time); open it at https://ui.perfetto.dev\n"
    events = [each.track_event for each in pb.Trace.FromString(Path("run.pftrace").read_bytes()).packet]
    assert [each.name for each in events if each.name] == ["dma_copy", "tensor_reduce", "dma_copy"]


def test_mistakes_are_said() -> None:
    """A file that is no run, one that cannot be written, a run of a device."""
    pytest.importorskip("perfetto")
    done = timeline("missing.json")
    assert (done.exit_code, "missing.json cannot be read" in done.stderr) == (2, True)
    done = timeline("-o", "nowhere/x.pftrace", "run.json")
    assert (done.exit_code, "x.pftrace cannot be read or written" in done.stderr) == (2, True)
    Run("giou", "neuron", outputs=np.ones(1)).save("device.json")
    done = timeline("device.json")
    assert done.exit_code == 1
    assert done.stderr == "Error: the run of giou on neuron has no instructions that a timeline could show\n"
