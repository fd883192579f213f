"""Measurements of a kernel by the compiler: its vector memory, its bundles, and its cycles by the static profile."""

from __future__ import annotations

import atexit
import json
import re
import shutil
import tempfile
import threading
from functools import cache
from pathlib import Path
from typing import NamedTuple

from nkitools.pallas.calls import Call
from nkitools.pallas.chips import Chip
from nkitools.pallas.compiler import Compiler, Crashed, compiler
from nkitools.pallas.lowering import Program, first_sentences, lower

_STEP = 4 << 10

# A dump has a file of this kind for the kernel, and others for what the compiler puts around it.
_DUMP = "*final_hlo-static-per-bundle-utilization.txt"
_AROUND = ("-TLP-", "-<late-initialization>-", "-<late-finalization>-")
_SPILL_COLUMN = "VSTORE:SPILL"
_UNITS = {"MATMUL": "MXU"}  # since libtpu 0.0.52, which counts the loading of weights apart (MATPUSH)
DUMP_FLAGS = "--xla_jf_dump_to={} --xla_jf_dump_llo_text=true"


class Bundles(NamedTuple):
    """The number of a kernel's instruction bundles, of those that spill a register, and the share of used slots.

    ``units``: the share of its slots that each unit (``MXU``, ``VALU``, ``VLOAD``, ...) uses, each bundle counted once.
    """

    total: int
    spilling: int
    units: dict[str, float]


def least_vmem(call: Call, chip: Chip, timeout: float, guess: int) -> int:
    """Return the least memory limit, in bytes and to 4 KiB, with which the compiler accepts an accepted call.

    It bisects from ``guess``: two compilations if the guess is right, some fifteen if not.
    """
    refused, taken = 0, (call.vmem_limit or chip.scoped_vmem) // _STEP
    tries = [-(-guess // _STEP), -(-guess // _STEP) - 1]
    while taken - refused > 1:
        limit = tries.pop(0) if tries else (refused + taken) // 2
        if refused < limit < taken:
            program = lower(call, chip, vmem_limit_bytes=limit * _STEP)
            is_taken = isinstance(program, Program) and compiler().compile(program, chip, timeout)["accepted"]
            refused, taken = (refused, limit) if is_taken else (limit, taken)
    return taken * _STEP


def count_bundles(program: Program, chip: Chip, timeout: float) -> Bundles | None:
    """Compile in a separate process and return the counts of the compiler's dump; None without a dump."""
    with tempfile.TemporaryDirectory() as folder:
        dumping = Compiler({"LIBTPU_INIT_ARGS": DUMP_FLAGS.format(folder)})
        try:
            dumping.compile(program, chip, timeout)
        finally:
            dumping.close()
        return bundles_in(Path(folder))


def bundles_in(folder: Path) -> Bundles | None:
    """Return the counts of all kernels in a dump; None for no kernels."""
    files = [path for path in sorted(folder.glob(_DUMP)) if not any(each in path.name for each in _AROUND)]
    counts = [_counted(path.read_text()) for path in files]
    if not counts:
        return None
    total = sum(each.total for each in counts)
    units = {unit: sum(each.units[unit] * each.total for each in counts) / max(total, 1) for unit in counts[0].units}
    return Bundles(total, sum(each.spilling for each in counts), units)


def _counted(text: str) -> Bundles:
    """Return the counts in a table: two lines of heading, the slots of each unit, and a line for each bundle."""
    head, _, table = text.partition("UTILIZATION:")
    titles = [line for line in head.splitlines() if line.strip()]
    names = next(index for index, line in enumerate(titles) if "," in line)
    columns, slots = (
        [name.strip() for name in titles[names].split(",")],
        [int(each) for each in titles[names + 1].split()],
    )
    rows = [[int(each) for each in line.split()] for line in table.splitlines() if line.strip()]
    used = {name: sum(row[index] for row in rows) for index, name in enumerate(columns)}
    # What spills or fills counts among the stores and loads too.
    units = {
        _UNITS.get(name, name): used[name] / max(size * len(rows), 1)
        for name, size in zip(columns, slots, strict=True)
        if ":" not in name
    }
    return Bundles(len(rows), sum(row[columns.index(_SPILL_COLUMN)] > 0 for row in rows), units)


class VectorMemory(NamedTuple):
    """The vector memory that the compiler gives a kernel, in bytes, and the part of it for spilled registers."""

    total: int
    spilled: int


def vmem_in(folder: Path) -> VectorMemory | None:
    """Return the vector memory of the kernel that takes the most, from the reports in a dump; None without."""
    found = []
    for path in folder.glob("*vmem_report.html"):
        _, _, data = path.read_text().partition("const DATA =")
        report, _ = json.JSONDecoder().raw_decode(data.lstrip())
        for kernel in (report["hlo_breakdowns"] or {}).values():
            parts = [part for block in kernel["blocks"] for part in block.get("allocations", ())]
            spilled = sum(int(part["size"]) for part in parts if str(part.get("tag")).upper() == "SPILL")
            found.append(VectorMemory(int(kernel["total_size"]), spilled))
    return max(found, default=None)


_CYCLES = re.compile(r"estimated_cycles: (\d+)")


class Profile(NamedTuple):
    """The compiler's estimate of a kernel: its cycles with the grid, its bundles, and its vector memory."""

    cycles: int
    bundles: Bundles | None = None
    vmem: VectorMemory | None = None


class Profiler:
    """A process of the compiler that profiles the programs it compiles. It is restarted after a crash."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="nkitools-profile-"))
        # The compiler aborts at this flag for some chips, so that its process is not the one that compiles for checks.
        flags = f"--xla_jf_dump_static_llo_profile_to={self._folder} {DUMP_FLAGS.format(self._folder)}"
        self._compiler = Compiler({"LIBTPU_INIT_ARGS": flags})
        self._lock = threading.Lock()

    def profile(self, program: Program, chip: Chip, timeout: float) -> Profile:
        """Return the profile of a program. Crashed if the compiler gives none."""
        with self._lock:
            for old in self._folder.iterdir():
                old.unlink()
            answer = self._compiler.compile(program, chip, timeout)
            if not answer["accepted"]:
                raise Crashed(f"the compiler does not take it: {first_sentences(answer['error'])}")
            bundles, memory = bundles_in(self._folder), vmem_in(self._folder)
            texts = [path.read_text() for path in self._folder.glob("*_static_llo_profile.textproto")]
        found = [int(cycles) for text in texts for cycles in _CYCLES.findall(text)]
        if not found:
            raise Crashed("the compiler wrote no profile")
        return Profile(sum(found), bundles, memory)

    def close(self) -> None:
        """End the process and remove its files."""
        self._compiler.close()
        shutil.rmtree(self._folder, ignore_errors=True)


@cache
def profiler() -> Profiler:
    """Return the profiler that is kept for the whole session."""
    warm = Profiler()
    atexit.register(warm.close)
    return warm
