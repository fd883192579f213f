"""The compiler's own estimate of a kernel's cycles, from a process that writes its static profile."""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
import threading
from functools import cache
from pathlib import Path

from nkitools.pallas.chips import Chip
from nkitools.pallas.compiler import Compiler, Crashed
from nkitools.pallas.lowering import Program, first_sentences

_CYCLES = re.compile(r"estimated_cycles: (\d+)")


class Profiler:
    """A process of the compiler that profiles what it compiles. It is started again after a crash."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="nkitools-profile-"))
        # The compiler aborts at this flag for some chips, so that its process is not the one that compiles for checks.
        self._compiler = Compiler({"LIBTPU_INIT_ARGS": f"--xla_jf_dump_static_llo_profile_to={self._folder}"})
        self._lock = threading.Lock()

    def cycles(self, program: Program, chip: Chip, timeout: float) -> int:
        """Return the estimated cycles of a program, its grid included; Crashed where the compiler gives none."""
        with self._lock:
            for old in self._folder.iterdir():
                old.unlink()
            answer = self._compiler.compile(program, chip, timeout)
            if not answer["accepted"]:
                raise Crashed(f"the compiler does not take it: {first_sentences(answer['error'])}")
            texts = [path.read_text() for path in self._folder.glob("*_static_llo_profile.textproto")]
        found = [int(cycles) for text in texts for cycles in _CYCLES.findall(text)]
        if not found:
            raise Crashed("the compiler wrote no profile")
        return sum(found)

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
