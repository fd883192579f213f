"""What a run may take of the host's memory is a limit that holds before the memory is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest

import nkitools
from nkitools.chip.host_memory import HostMemory, MemoryLimitError, size_text
from nkitools.facts import options
from nkitools.platforms import free_memory
from nkitools.record.run import Run
from nkitools.report.run_counts import Tally, tally_of

MIB = 1 << 20
X = np.ones((128, 512), np.float32)  # 256 KiB


def doubled(x: Any, megabytes: int = 1) -> Any:
    scratch = nl.ndarray((megabytes * 256, 1024), nl.float32, buffer=nl.private_hbm, name="scratch")
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, x.dtype)
    nisa.dma_copy(tile, x)
    nisa.tensor_scalar(tile, tile, nl.multiply, 2.0)
    nisa.dma_copy(scratch[:128, :512], tile)
    nisa.dma_copy(out, scratch[:128, :512])
    return out


def test_the_peak_is_of_arguments_and_tensors_in_hbm() -> None:
    """An argument and a result of 256 KiB each, and scratch of a MiB."""
    run = nkitools.simulate(doubled, X)
    assert run.peak_bytes == MIB + 2 * X.nbytes
    assert Run.from_json(run.to_json()).peak_bytes == run.peak_bytes


def test_what_is_gone_takes_nothing() -> None:
    """Scratch of each turn is free when the next turn makes its own."""

    def turns(x: Any) -> Any:
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        for _ in range(4):
            scratch = nl.ndarray((256, 1024), nl.float32, buffer=nl.private_hbm)
            nisa.dma_copy(scratch[:128, :512], x)
            nisa.dma_copy(out, scratch[:128, :512])
            del scratch
        return out

    assert nkitools.simulate(turns, X).peak_bytes == MIB + 2 * X.nbytes


def test_a_run_after_a_refusal_is_right() -> None:
    """The refusal is an exception of the kernel's, whose last frame of the author's is the line of the tensor."""
    with options.override(memory="0.03125"), pytest.raises(MemoryLimitError) as raised:
        nkitools.simulate(doubled, X, 64)
    own = [entry for entry in raised.traceback if entry.path.name == "test_host_memory.py"]
    assert own[-1].lineno + 1 == doubled.__code__.co_firstlineno + 1
    assert nkitools.simulate(doubled, X).outputs[0, 0] == 2


def test_a_refusal_names_the_largest() -> None:
    """The tensors that live are named, the largest first."""

    def two(x: Any) -> Any:
        first = nl.ndarray((512, 1024), nl.float32, buffer=nl.private_hbm, name="first")
        nisa.dma_copy(first[:128, :512], x)
        second = nl.ndarray((768, 1024), nl.float32, buffer=nl.private_hbm, name="second")
        return second, first

    line = two.__code__.co_firstlineno + 1
    with options.override(memory=str(4 / 1024)), pytest.raises(MemoryLimitError) as raised:
        nkitools.simulate(two, X)
    assert str(raised.value) == (
        f"tensor `second`, float32 [768, 1024], 3 MiB (test_host_memory.py:{line + 2}) is refused: the tensors of this "
        "run would take 5 MiB, and may take 4 MiB, the option `memory`; beside it there are tensor `first`, "
        f"float32 [512, 1024], 2 MiB (test_host_memory.py:{line}). Make the tensors smaller, or say how much a run may "
        "take: --nki-memory=GIB, NKITOOLS_MEMORY."
    )


@pytest.mark.parametrize("buffer", [nl.private_hbm, nl.shared_hbm, nl.sbuf])
@pytest.mark.parametrize("rows", [1 << 20, 1 << 45])
def test_no_memory_is_taken_for_what_is_too_large(buffer: Any, rows: int) -> None:
    """Of 4 TiB and of more than an address can be: refused in every memory, with the sentence of the limit."""

    def huge(x: Any) -> Any:
        tile = nl.ndarray((128, rows, 8192), nl.float32, buffer=buffer, name="tile")
        nisa.memset(tile[0:128, 0, :], 0.0)
        return tile

    with pytest.raises(MemoryLimitError, match=r"tensor `tile`, float32 .* is refused: the tensors of this run would"):
        nkitools.simulate(huge, X)


def test_ranks_share_a_limit() -> None:
    """The results of all ranks live to the end, the scratch of the running one alone: two fit 1.5 MiB, three do not."""
    with options.override(memory=str(1.5 / 1024)):
        assert nkitools.simulate(doubled, (X,), (X,), ranks=2).peak_bytes == MIB + 4 * X.nbytes
        with pytest.raises(MemoryLimitError):
            nkitools.simulate(doubled, (X,), (X,), (X,), ranks=3)


def test_the_summary_tells_a_large_run() -> None:
    """Above a GiB the sentence of a tally ends in the memory of the largest run."""
    tally = tally_of([nkitools.simulate(doubled, X)], "")
    assert tally.sentence() == "1 kernel run, 0 findings, 0 device prints"
    tally.merge(Tally(kernels=1, peak_bytes=3 << 29))
    assert tally.sentence() == "2 kernels run, 0 findings, 0 device prints, the largest took 1.5 GiB"


def test_a_small_run_does_not_ask_the_system() -> None:
    """What is free is asked for at a quarter of a GiB."""
    asked: list[int] = []

    def limit() -> tuple[int, str] | None:
        asked.append(1)
        return None

    host = HostMemory(limit)
    host.check(255 * MIB, "a tensor")
    assert not asked
    host.check(257 * MIB, "a tensor")
    host.check(257 * MIB, "a tensor")
    assert len(asked) == 1


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """Return a root with 8 GiB free, and a control group of 4 GiB that uses 3, of which 1 can be dropped."""
    group = tmp_path / "sys/fs/cgroup/box/inner"
    group.mkdir(parents=True)
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text("MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\n")
    (tmp_path / "proc/self/cgroup").write_text("0::/box/inner\n")
    (group.parent / "memory.max").write_text(f"{4 << 30}\n")
    (group.parent / "memory.current").write_text(f"{3 << 30}\n")
    (group.parent / "memory.stat").write_text(f"anon 5\ninactive_file {1 << 30}\n")
    (group / "memory.max").write_text("max\n")
    (group / "memory.current").write_text(f"{3 << 30}\n")
    return tmp_path


def test_a_control_group_bounds_what_is_free(machine: Path) -> None:
    """Of the group above the process's own: 4 - 3 + 1 GiB."""
    assert free_memory(machine) == 2 << 30
    (machine / "proc/self/cgroup").write_text("0::/other\n")
    assert free_memory(machine) == 8 << 30


def test_a_control_group_of_version_1_bounds_it_too(machine: Path) -> None:
    """Its files have other names."""
    group = machine / "sys/fs/cgroup/memory/old"
    group.mkdir(parents=True)
    (machine / "proc/self/cgroup").write_text("7:cpu,memory:/old\n2:pids:/x\n")
    (group / "memory.limit_in_bytes").write_text(str(3 << 30))
    (group / "memory.usage_in_bytes").write_text(str(2 << 30))
    assert free_memory(machine) == 1 << 30


def test_sizes_have_the_unit_that_suits_them() -> None:
    """Three digits."""
    assert [size_text(each) for each in (7, 2048, 3 * MIB, 5 << 29)] == ["7 bytes", "2 KiB", "3 MiB", "2.5 GiB"]
