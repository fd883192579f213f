"""Asks the real TPU compiler, which libtpu has, by way of a process of its own that is kept for the next question."""

from __future__ import annotations

import atexit
import importlib.util
import os
import sys
import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from nkitools.pallas.chips import Chip
from nkitools.pallas.device_axes import devices_in
from nkitools.pallas.lowering import Program
from nkitools.processes import AnsweringChild, End, Lost, log_file, text_of
from nkitools.processes import TimedOut as TimedOutChild

# Set in the process of the compiler only. The first is needed wherever two of them run side by side (pytest-xdist); the
# others keep libtpu from looking for a TPU, or for the metadata of a cloud machine, and from writing logs.
_ENVIRONMENT = {
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_MIN_LOG_LEVEL": "3",
    "TPU_STDERR_LOG_LEVEL": "3",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "PYTHONWARNINGS": "ignore",
}
_START_SECONDS = 120.0
_END_SECONDS = 10.0


def why_not() -> str:
    """Return why the TPU compiler cannot run here; '' if it can."""
    if os.environ.get("TPU_LIBRARY_PATH") or _has_libtpu():
        return ""
    return "libtpu, which has the TPU compiler, is not installed (Linux x86-64: pip install 'nkitools[tpu-aot]')"


@cache
def _has_libtpu() -> bool:
    return importlib.util.find_spec("libtpu") is not None


class Crashed(Exception):
    """The compiler ended its process; the text says how."""


class TimedOut(Crashed):
    """The compiler was ended because it had not answered in time."""


class Compiler:
    """One warm process of the compiler. It is started when it is first asked, and again after it has crashed."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = dict(environment or {})
        self._process: AnsweringChild | None = None
        self._log: Any = None
        self._owner = os.getpid()
        self._lock = threading.Lock()

    def compile(self, program: Program, chip: Chip, timeout: float) -> dict[str, Any]:
        """Return the compiler's answer to a program for ``chip``. Crashed if its process ends without one."""
        question = {
            "topology": chip.topology_of(devices_in(program.axes)),
            "axes": program.axes,
            "code": program.code,
            "inputs": program.inputs,
            "outputs": program.outputs,
            "kept": program.kept,
        }
        with self._lock:
            process = self._running()
            return self._answer(process, timeout, question)

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None or self._owner != os.getpid():  # a fork of the owner leaves it to him
            return
        process.close()
        self._log.close()

    def _running(self) -> AnsweringChild:
        if self._process is not None and self._owner == os.getpid() and self._process.poll() is None:
            return self._process
        self.close()
        self._owner = os.getpid()
        self._log = log_file()
        package = Path(__file__).parents[2]
        environment = {**os.environ, **_ENVIRONMENT, **self._environment}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(package), os.environ.get("PYTHONPATH"))))
        command = [sys.executable, "-m", "nkitools.pallas.worker"]
        self._process = AnsweringChild(command, stdout=self._log, stderr=self._log, env=environment)
        ready = self._answer(self._process, _START_SECONDS)
        if not ready["ready"]:
            self.close()
            raise Crashed(f"the process of the compiler does not start: {ready['error']}")
        return self._process

    def _answer(
        self, process: AnsweringChild, timeout: float, question: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the next answer, of a question if there is one."""
        try:
            if question is not None:
                process.send(question)
            answer: dict[str, Any] = process.receive(timeout)
        except TimedOutChild:
            self.close()
            raise TimedOut(f"the compiler has not answered within {timeout:g} s") from None
        except Lost:
            raise self._crashed(process) from None
        return answer

    def _crashed(self, process: AnsweringChild) -> Crashed:
        end = process.wait(_END_SECONDS) or End(-9)
        how = f"signal {end.described}" if end.status < 0 else end.described
        said = self._last_words()
        self.close()
        return Crashed(f"the compiler ended its process ({how})" + (f": {said}" if said else ""))

    def _last_words(self) -> str:
        """Return the line of the standard error that a crash left behind."""
        lines = text_of(self._log).splitlines()
        telling = [line for line in lines if line.startswith("F") or "Check failed" in line or "Error" in line]
        return str((telling or lines or [""])[0]).strip()[:300]


@cache
def compiler() -> Compiler:
    """Return the process that is kept for all questions of this one; it ends with it."""
    warm = Compiler()
    atexit.register(warm.close)
    return warm
