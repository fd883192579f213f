"""What a user waits for, each in processes of their own: the start, a launch, a sweep, nki.benchmark, a keystroke.

Times are the processor's; the checkouts take turns, and the median of the rounds counts. A ratio compares with
something that the same process has measured.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.table import Figures

HERE = Path(__file__).parent.parent
_CLOCK = """
import json, sys, time
sys.path.insert(0, TREE)
found = {}
def taken(call, times=1):
    start = time.process_time()
    for _ in range(times):
        call()
    return (time.process_time() - start) / times
def imported():
    global nkitools, nki, nisa, nl
    import nkitools
    nkitools.install_stand_in(prefer="builtin")
    import nki, nki.isa as nisa, nki.language as nl
def numpy():
    import numpy
"""
_KERNEL = """
import KERNEL as nki, KERNEL.isa as nisa, KERNEL.language as nl, numpy as np
@nki.jit
def kernel(x):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.add)
    nisa.dma_copy(dst=out, src=tile)
    return out
x = np.ones((128, 64), np.float32)
"""
_START = """
least = taken(numpy)
found["start: import of nki over NumPy's"] = taken(imported) / least
KERNEL
found["start: first run over NumPy's import"] = taken(lambda: nkitools.simulate(kernel, x)) / least
for _ in range(5): nkitools.simulate(kernel, x)
found["launch: us, three instructions"] = 1e6 * taken(lambda: nkitools.simulate(kernel, x), 300)
"""
_BARE = """
sys.dont_write_bytecode = True
least = taken(numpy)
found["start without bytecode: import of nki over NumPy's"] = taken(imported) / least
"""
_SWEEP = """
imported()
KERNEL
def arguments(rows):
    return (np.random.default_rng(rows).random((rows, 64), np.float32),)
def reference(x):
    return 2 * x
run = lambda: nkitools.simulate(kernel, *arguments(64))
run()
from nkitools.sweeps.checked_call import Case, CheckedCall
call, case = CheckedCall(kernel, "nki", arguments, reference), Case({"rows": 64}, "trn2")
for _ in range(3): call(case), run()
found["sweep: a case over a run"] = taken(lambda: call(case), 50) / taken(run, 50)
"""
_BENCHMARK = """
imported()
import neuronxcc.nki as nki, neuronxcc.nki.language as nl, numpy as np
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for at in range(16):
        nl.store(out[:, 32 * at : 32 * at + 32], nl.exp(nl.load(x[:, 32 * at : 32 * at + 32])))
    return out
x = np.ones((128, 512), np.float32)
measured = nki.benchmark(warmup=1, iters=2)(kernel)
def measure():
    measured(x)
for _ in range(3): kernel(x), measure()
found["nki.benchmark: a call over a run"] = taken(measure, 20) / taken(lambda: kernel(x), 20)
"""
_KEYSTROKE = """
from pathlib import Path
from nkitools.serve.open_files import OpenFiles
path = Path(HERE) / "kernels" / "nki" / "moe.py"
text = path.read_text(encoding="utf-8")
lines = text.splitlines(keepends=True)
files = OpenFiles()
files.put(path, text)
times = []
for number in range(12):
    for at, line in enumerate(lines):
        if line.startswith("    return ") and at % 3 == 0:
            changed = [*lines[:at], line.rstrip() + "  # " + "x" * (number + 1) + chr(10), *lines[at + 1 :]]
            times.append(taken(lambda: files.put(path, "".join(changed))))
found["language server: ms a keystroke, 240 lines"] = 1e3 * sorted(times)[len(times) // 2]
"""


def waits(trees: Sequence[Path], rounds: int) -> list[Figures]:
    """Return the figures of each checkout."""
    scripts = [_START, _SWEEP, _BENCHMARK, _KEYSTROKE]
    rows: list[list[dict[str, float]]] = [[] for _ in trees]
    for _ in range(rounds + 1):
        for of_tree, tree in zip(rows, trees, strict=True):
            found: dict[str, float] = {}
            for script in scripts:
                found |= _measured(script, tree)
            with TemporaryDirectory() as folder:
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(tree / "nkitools", Path(folder) / "nkitools", ignore=ignored)
                found |= _measured(_BARE, Path(folder))
            of_tree.append(found)
    # The first round leaves compiled modules to the others, as an author's own first run does.
    return [{"waiting": {key: statistics.median(each[key] for each in of[1:]) for key in of[0]}} for of in rows]


def _measured(script: str, tree: Path) -> dict[str, float]:
    """Return what a script has found in a new process, with the package of a checkout."""
    text = (_CLOCK + script).replace("TREE", repr(str(tree))).replace("HERE", repr(str(HERE)))
    text = text.replace("\nKERNEL\n", _KERNEL.replace("KERNEL", "nki"))
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    if (tree / "nkitools" / "replay").is_dir():  # of old: a warm launch then ran nothing
        kept["NKITOOLS_REPLAY"] = "off"
    with TemporaryDirectory() as folder:  # kernels are read as source
        file = Path(folder) / "waiting.py"
        file.write_text(f"{text}\nprint(json.dumps(found))\n", encoding="utf-8")
        command = [sys.executable, "-P", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd="/", env=kept)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found
