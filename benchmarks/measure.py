"""Measurements: the processor's time of this process, the least of several rounds in which the candidates take turns.

A busy machine takes a process from the processor, and the processor's time does not count that; what remains of the
disturbance (caches, clock) only ever adds, so the least of several rounds is nearest to the truth. Of calls that only
move memory the least is the one that has found most of it in the caches, for which each candidate has to be lucky: of
eight times 15 rounds the ratio of the least times was 0.92 to 1.43, that of the medians 0.97 to 1.17. There the median
counts.
"""

from __future__ import annotations

import json
import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

import nkitools
from benchmarks.workloads import Workload, workloads

HERE = Path(__file__).parent.parent
CHAIN, ALLOCATED = 5000, 2000  # instructions of the chain, and tiles that a kernel allocates
FILLED, ELEMENTS, LAUNCHES = 512, 256, 20  # columns of a tile, elements that are copied one by one, launches
ACTIONS = "single actions"
FAULTS = "page faults"

Calls = dict[str, Callable[[], Any]]


def cpu_seconds(call: Callable[[], Any]) -> float:
    """Return the processor's time of one call."""
    start = time.process_time()
    call()
    return time.process_time() - start


class InThisProcess:
    """Rounds of calls that take turns, in this process and with the package that it has imported."""

    def __init__(self, rules: str) -> None:
        self.rules = rules
        self.workloads = {each.name: each for each in workloads()}
        self.calls: Calls = {}
        self.counts: dict[str, int] = {}  # by how many the time of a call is divided
        self.order = random.Random(0)

    def prepare(self, name: str) -> None:
        """Make the calls of a workload, or of the single actions, and run each once."""
        self.calls = action_calls() if name == ACTIONS else workload_calls(self.workloads[name], self.rules)
        self.counts = {}
        if name != ACTIONS:
            workload = self.workloads[name]
            run = nkitools.simulate(workload.kernel, *workload.inputs, rules=self.rules)
            if hasattr(type(run), "dependences"):  # not in trees of old
                self.calls["dependences"] = lambda: dependences_of(run)
                self.counts["dependences"] = dependences_of(run)

    def round(self) -> dict[str, float]:
        """Run each call once, and return the processor's time of each, and the page faults of the simulator's.

        Each round has an order of its own: what the one before a call has left of memory and caches costs it time.
        """
        calls = list(self.calls.items())
        self.order.shuffle(calls)
        found = {}
        for name, call in calls:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            found[name] = cpu_seconds(call) / self.counts.get(name, 1)
            if name == "simulator":
                found[FAULTS] = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
        return found


def dependences_of(run: Any) -> int:
    """Compute the dependences of a run, whether they were computed before or not; return the number of rows."""
    vars(run).pop("dependences", None)
    found = run.dependences
    return min(len(each) for each in (found.flow, found.output, found.anti))


def workload_calls(workload: Workload, rules: str) -> Calls:
    """Return what a workload compares, after the results have been compared."""

    def simulated(level: str = rules) -> Any:
        return nkitools.simulate(workload.kernel, *workload.inputs, rules=level).outputs

    calls: Calls = {
        "simulator": simulated,
        "rules off": lambda: simulated("off"),
        "numpy": lambda: workload.plain(*workload.inputs),
        "tiles": lambda: workload.tiles(*workload.inputs),
    }
    expected = _in_float32(calls["numpy"]())
    for name in ("simulator", "rules off", "tiles"):
        np.testing.assert_allclose(
            _in_float32(calls[name]()), _in_float32(expected), rtol=0, atol=workload.tolerance, err_msg=name
        )
    return calls


def _in_float32(array: Any) -> Any:
    """Return an array in a dtype in which NumPy compares and subtracts."""
    return array.astype(np.float32, copy=False)


def _filling_calls(x: Any) -> Calls:
    """Return a tile that is filled column by column, and one that is filled element by element."""
    import nki
    import nki.isa as nisa
    import nki.language as nl

    @nki.jit
    def columns(x: Any, count: int) -> Any:
        out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
        tile = nl.ndarray((128, FILLED), dtype=nl.float32, buffer=nl.sbuf)
        column = nl.load(x)
        for at in range(count):
            nisa.tensor_tensor(dst=tile[:, at : at + 1], data1=column, data2=column, op=nl.add)
        nl.store(out, column)
        return out

    @nki.jit
    def elements(x: Any, count: int) -> Any:
        out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
        tile, copied = nl.load(x), nl.ndarray((1, ELEMENTS), dtype=nl.float32, buffer=nl.sbuf)
        for at in range(count):
            copied[0:1, at] = tile[0:1, 0]
        nl.store(out, tile)
        return out

    return {
        "columns": lambda: nkitools.simulate(columns, x, FILLED),
        "elements": lambda: nkitools.simulate(elements, x, ELEMENTS),
    }


def action_calls() -> Calls:
    """Return a chain of instructions, a row of allocations, both without any, and NumPy's part of the chain."""
    import nki
    import nki.isa as nisa
    import nki.language as nl

    @nki.jit
    def chain(x: Any, count: int) -> Any:
        out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
        tile = nl.load(x)
        for _ in range(count):
            nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.maximum)
        nl.store(out, tile)
        return out

    @nki.jit
    def placed_chain(x: Any, count: int) -> Any:
        out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
        tile = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf, address=(0, 1024))
        nisa.dma_copy(dst=tile, src=x)
        for _ in range(count):
            nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.maximum)
        nl.store(out, tile)
        return out

    @nki.jit
    def partly_written_chain(x: Any, count: int) -> Any:
        out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
        tile = nl.ndarray((128, 2), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile[:, 0:1], src=x)
        for _ in range(count):
            nisa.tensor_tensor(dst=tile[:, 0:1], data1=tile[:, 0:1], data2=tile[:, 0:1], op=nl.maximum)
        nl.store(out, tile[:, 0:1])
        return out

    @nki.jit
    def row(x: Any, count: int) -> Any:
        out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
        tile = nl.load(x)
        for _ in range(count):
            nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        nl.store(out, tile)
        return out

    x, larger = np.ones((128, 1), np.float32), np.empty((128, 1), np.float32)

    def bare() -> None:
        for _ in range(CHAIN):
            np.maximum(x, x, out=larger)

    calls: Calls = {
        "chain": lambda: nkitools.simulate(chain, x, CHAIN),
        "no chain": lambda: nkitools.simulate(chain, x, 0),
        "placed": lambda: nkitools.simulate(placed_chain, x, CHAIN),
        "partly written": lambda: nkitools.simulate(partly_written_chain, x, CHAIN),
        "numpy": bare,
        "row": lambda: nkitools.simulate(row, x, ALLOCATED),
        "no row": lambda: nkitools.simulate(row, x, 0),
        **_filling_calls(x),
        "launches": lambda: [nkitools.simulate(chain, x, 1) for _ in range(LAUNCHES)],
    }
    for call in calls.values():
        call()
    return calls


def counted(rounds: Sequence[dict[str, float]], *, waits_for_memory: bool = False) -> dict[str, float]:
    """Return the time of each call that counts: the least of the rounds, of what waits for memory their median."""
    chosen = statistics.median if waits_for_memory else min
    return {name: chosen([each[name] for each in rounds]) for name in rounds[0]}


def figures(name: str, times: dict[str, float]) -> dict[str, float]:
    """Return what is reported of the times of a workload, or of the single actions."""
    if name == ACTIONS:
        return {
            "us an instruction": 1e6 * (times["chain"] - times["no chain"]) / CHAIN,
            "us of NumPy in it": 1e6 * times["numpy"] / CHAIN,
            "us an instruction on an address": 1e6 * (times["placed"] - times["no chain"]) / CHAIN,
            "us an instruction on a tile written in part": 1e6 * (times["partly written"] - times["no chain"]) / CHAIN,
            "us an allocation": 1e6 * (times["row"] - times["no row"]) / ALLOCATED,
            "us a column of a tile": 1e6 * (times["columns"] - times["no chain"]) / FILLED,
            "us an element": 1e6 * (times["elements"] - times["no chain"]) / ELEMENTS,
            "us a launch of three instructions": 1e6 * times["launches"] / LAUNCHES,
        }
    found = {
        "over NumPy": times["simulator"] / times["numpy"],
        "over tiles": times["simulator"] / times["tiles"],
        "rules / off": times["simulator"] / times["rules off"],
        "ms": 1e3 * times["simulator"],
        "NumPy ms": 1e3 * times["numpy"],
        FAULTS: times[FAULTS],
    }
    if "dependences" in times:
        found["dependences us an instruction"] = 1e6 * times["dependences"]
    return found


_COLD = """
import json, sys, time
sys.path.insert(0, {tree!r})
taken, start = {{}}, time.process_time()
def lap(name):
    global start
    now = time.process_time()
    taken[name], start = 1e3 * (now - start), time.process_time()
import numpy as np
lap("import numpy")
import nkitools
lap("import nkitools")
sys.path[0] = {here!r}
nkitools.install_stand_in(prefer="builtin")
import nki, nki.isa, nki.language
lap("import nki.*")
from kernels.nki.softmax import softmax
x = np.ones((128, 64), np.float32)
start = time.process_time()
nkitools.simulate(softmax, x)
lap("first run")
nkitools.simulate(softmax, x)
lap("second run")
from kernels.nki.flash_attention import flash_attention
heads = [np.ones((1100, 64), np.float32) for _ in range(3)]
start = time.process_time()
run = nkitools.simulate(flash_attention, *heads, causal=True)
lap(f"first run of {{len(run.instructions)}} instructions")
print(json.dumps(taken))
"""
_PEAK = """
import sys, tracemalloc
sys.path.insert(0, {tree!r})
import nkitools
sys.path[0] = {here!r}
nkitools.install_stand_in(prefer="builtin")
from benchmarks.workloads import workloads
each = [one for one in workloads() if one.name == {name!r}][0]
nkitools.simulate(each.kernel, *each.inputs)
tracemalloc.start()
for _ in range(5):
    nkitools.simulate(each.kernel, *each.inputs)
print(tracemalloc.get_traced_memory()[1] / 2**20)
"""


def _in_a_process(script: str) -> str:
    # The first process leaves compiled modules to the others, as an author's own first one does.
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd="/", env=kept)
    return done.stdout.splitlines()[-1]


def cold_start(tree: Path, rounds: int) -> dict[str, float]:
    """Return the milliseconds of a new process's imports, and of its first and second run of a small kernel."""
    script = _COLD.format(tree=str(tree), here=str(HERE))
    taken = [json.loads(_in_a_process(script)) for _ in range(rounds)]
    return {f"ms {name}": min(each[name] for each in taken) for name in taken[0]}


def peak_memory(tree: Path, workload: str) -> float:
    """Return the peak in MiB of what Python and NumPy hold in five runs of a workload, without its inputs."""
    return float(_in_a_process(_PEAK.format(tree=str(tree), here=str(HERE), name=workload)))


def commit(tree: Path) -> str:
    """Return the commit of a checkout, or nothing where it is none."""
    asked = ["git", "-C", str(tree), "describe", "--always", "--dirty"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


def machine() -> dict[str, Any]:
    """Return what the numbers depend on beside the code."""
    models = []
    if os.path.exists("/proc/cpuinfo"):
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        models = [line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith("model name")]
    return {
        "processor": models[0] if models else platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "blas": _blas(),
    }


def _blas() -> str:
    """Return NumPy's BLAS library, and its kernel for this processor."""
    found = [each for each in threadpool_info() if each["user_api"] == "blas"]
    if not found:
        return "a BLAS that has no name"
    first = found[0]
    return f"{first['internal_api']} {first['version']} with its {first.get('architecture', 'only')} kernels"
