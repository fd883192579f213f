"""The compiler's own estimate of a kernel's cycles, units and memory, from a process that writes its static profile."""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
import threading
from functools import cache
from pathlib import Path
from typing import NamedTuple

from nkitools.pallas.chips import Chip
from nkitools.pallas.compiler import Compiler, Crashed
from nkitools.pallas.lowering import Program, first_sentences
from nkitools.pallas.measuring import DUMP_FLAGS, Bundles, VectorMemory, bundles_in, vmem_in

_CYCLES = re.compile(r"estimated_cycles: (\d+)")


class Profile(NamedTuple):
    """The compiler's estimate of a kernel: its cycles with the grid, its bundles, and its vector memory."""

    cycles: int
    bundles: Bundles | None = None
    vmem: VectorMemory | None = None


class Profiler:
    """A process of the compiler that profiles what it compiles. It is started again after a crash."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="nkitools-profile-"))
        # The compiler aborts at this flag for some chips, so that its process is not the one that compiles for checks.
        flags = f"--xla_jf_dump_static_llo_profile_to={self._folder} {DUMP_FLAGS.format(self._folder)}"
        self._compiler = Compiler({"LIBTPU_INIT_ARGS": flags})
        self._lock = threading.Lock()

    def profile(self, program: Program, chip: Chip, timeout: float) -> Profile:
        """Return the estimate of a program; Crashed where the compiler gives none."""
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
