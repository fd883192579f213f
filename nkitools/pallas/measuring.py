"""Measurements of a kernel by the compiler: the vector memory that the kernel needs, and its bundles."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

from nkitools.pallas.calls import Call
from nkitools.pallas.chips import Chip
from nkitools.pallas.compiler import Compiler, compiler
from nkitools.pallas.lowering import Program, lower

_STEP = 4 << 10

# A dump has a file of this kind for the kernel, and others for what the compiler puts around it.
_DUMP = "*final_hlo-static-per-bundle-utilization.txt"
_AROUND = ("-TLP-", "-<late-initialization>-", "-<late-finalization>-")
_SPILL_COLUMN = "VSTORE:SPILL"


class Bundles(NamedTuple):
    """The number of a kernel's instruction bundles, and of those that spill a register to vector memory."""

    total: int
    spilling: int


def least_vmem(call: Call, chip: Chip, timeout: float, guess: int) -> int:
    """Return the least limit, in bytes and to 4 KiB, with which the compiler takes a call that it takes as it is.

    Found by halving, from ``guess`` on: two compilations where that is right, some fifteen where it is not.
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
    """Return the counts of the compiler's own dump, made by a process of its own; None where there is no dump."""
    with tempfile.TemporaryDirectory() as folder:
        dumping = Compiler({"LIBTPU_INIT_ARGS": f"--xla_jf_dump_to={folder} --xla_jf_dump_llo_text=true"})
        try:
            dumping.compile(program, chip, timeout)
        finally:
            dumping.close()
        files = [path for path in sorted(Path(folder).glob(_DUMP)) if not any(each in path.name for each in _AROUND)]
        counts = [_counted(path.read_text()) for path in files]
    return Bundles(sum(each.total for each in counts), sum(each.spilling for each in counts)) if counts else None


def _counted(text: str) -> Bundles:
    """Return a table: two lines of heading, what each unit can take, and a line for what each bundle takes."""
    head, _, table = text.partition("UTILIZATION:")
    columns = [name.strip() for name in next(line for line in head.splitlines() if "," in line).split(",")]
    spill = columns.index(_SPILL_COLUMN)
    rows = [line.split() for line in table.splitlines() if line.strip()]
    return Bundles(len(rows), sum(int(row[spill]) > 0 for row in rows))
