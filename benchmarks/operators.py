"""What the checks of custom C++ operators cost: the example operators, against the same sources without any check."""

from __future__ import annotations

import ctypes
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nkitools.customop import load, process
from nkitools.customop.abi import give_room, open_library
from nkitools.customop.arguments import take
from nkitools.customop.compiled_operator import Settings
from nkitools.customop.operator import Operator
from nkitools.customop.output import output_of
from nkitools.customop.toolchain import find_compiler

_HERE = Path(__file__).parent
_OPERATORS = _HERE.parent / "cpp_ops"
_WARM, _REPEATS = 10, 10  # pairs of the two kernels before the first one counts, and of those that do a round


@dataclass(frozen=True)
class Workload:
    """A kernel of ``cpp_ops`` and its operands."""

    name: str
    source: str
    kernel: str
    operands: tuple[Any, ...]
    multicore: bool = True


@dataclass(frozen=True)
class Cost:
    """Of each round the seconds of the kernel with checks and without, one after the other; those of a whole call."""

    workload: Workload
    rounds: list[tuple[float, float]]
    call: float

    def line(self) -> str:
        """A row of the table: the ratio of the two kernels, and what of the whole call the checks are."""
        ratios = [checked / plain for checked, plain in self.rounds]
        low, ratio, high = statistics.quantiles(ratios, n=4)
        share = statistics.median(checked - plain for checked, plain in self.rounds) / self.call
        plain = statistics.median(plain for _, plain in self.rounds)
        return f"{self.workload.name:<26}{ratio:>17.2f}x{low:>8.2f}{high:>8.2f}{share:>13.1%}{plain * 1e3:>12.3f} ms"


class _Plain(ctypes.Structure):
    """A tensor of plain/torch/torch.h."""

    _fields_ = (("data", ctypes.c_void_p), ("elements", ctypes.c_int64), ("shape", ctypes.c_void_p))


def workloads() -> list[Workload]:
    """Boxes as in the article; matrices as in the tutorial's training, and some that no cache holds."""
    random = np.random.default_rng(0)

    def matrix(*shape: int) -> Any:
        return random.standard_normal(shape).astype(np.float32)

    corners = random.uniform(0, 200, (2, 1024, 256, 2))
    boxes = np.concatenate((corners, corners + random.uniform(1, 55, corners.shape)), axis=3).astype(np.float32)
    return [
        Workload("GIoU 1024x256", "giou", "giou", (boxes[0], boxes[1])),
        *(
            Workload(f"ReLU {stage} {rows}x{columns}", f"relu/{stage}", "relu_forward", (x,), stage == "multicore")
            for rows, columns in ((32, 2048), (32, 4096), (4096, 2048))
            for x in (matrix(rows, columns),)
            for stage in ("tcm", "multicore")
        ),
    ]


@dataclass(frozen=True)
class _Prepared:
    """A call of an operator that waits to be run, in its memory: arguments, and room for the output."""

    memory: process.Memory
    run: Callable[[int, int], None]

    @classmethod
    def of(cls, operator: Operator, operands: tuple[Any, ...]) -> _Prepared:
        """The call that ``operator(*operands)`` makes, in this process."""
        built = operator.library.built
        shape, compute = open_library(built.shape), open_library(built.compute)
        memory = process.Memory()
        arguments, settings = take(operator.name, operator.signature, operands), Settings()
        call = memory.begin(arguments.size())
        arguments.write(call, memory.buffer)
        operator.prepare(call, settings, settings.cores(operator.library.multicore))
        call.canary = 0xFF
        shape.nkt_shape(ctypes.addressof(call))
        memory.grow(give_room(call))
        return cls(memory, compute.nkt_run)

    def checked(self) -> float:
        """Seconds of the kernel on all its cores, as a call runs it whose like has been seen before."""
        call = self.memory.end()
        at = ctypes.addressof(call)
        start = time.perf_counter()
        self.run(at, at)
        seconds = time.perf_counter() - start
        assert (call.stage, call.unwritten, call.events_used) == (3, 0, 0)
        return seconds

    def plain(self, kernel: Callable[[int, Any, Any], None]) -> float:
        """Seconds of the same source without checks, on the same memory."""
        call = self.memory.end()
        base = ctypes.addressof(call)
        records = [each.tensor for each in call.args[: call.arguments]] + [call.out]
        tensors = (_Plain * len(records))(
            *(_Plain(base + each.offset, each.numel, ctypes.addressof(each.sizes)) for each in records)
        )
        output = ctypes.byref(tensors, ctypes.sizeof(_Plain) * (len(records) - 1))
        start = time.perf_counter()
        kernel(call.cores, tensors, output)
        return time.perf_counter() - start

    def output(self) -> Any:
        """What is there now."""
        return output_of(self.memory.end(), self.memory.buffer)


def _unchecked(workload: Workload, scratch: Path) -> Callable[[int, Any, Any], None]:
    """The source, compiled for bare memory with the flags that nkitools compiles it with."""
    compiler = find_compiler()
    source = _OPERATORS / workload.source / (Path(workload.source).parts[0] + ".cpp")
    library = scratch / "plain.so"
    defined = (f'-DSOURCE="{source}"', f"-DKERNEL={workload.kernel}", f"-DOPERANDS={len(workload.operands)}")
    paths = ("-I", str(_HERE / "plain"), str(_HERE / "plain" / "run.cpp"))
    subprocess.run([compiler.path, *compiler.flags, *defined, *paths, "-shared", "-o", str(library)], check=True)
    run: Callable[[int, Any, Any], None] = ctypes.CDLL(str(library)).run
    return run


def cost(workload: Workload, rounds: int) -> Cost:
    """``workload`` as a whole call, then with checks and without in turns; the results are compared first."""
    source = _OPERATORS / workload.source
    with tempfile.TemporaryDirectory() as scratch:
        name = Path(workload.source).parts[0]
        library = load(
            f"{name}_cost", [str(source / f"{name}.cpp")], [str(source / "shape.cpp")], multicore=workload.multicore
        )
        operator = getattr(library, workload.kernel)
        prepared, plain = _Prepared.of(operator, workload.operands), _unchecked(workload, Path(scratch))
        prepared.plain(plain)
        np.testing.assert_array_equal(prepared.output(), operator(*workload.operands))

        def call() -> float:
            start = time.perf_counter()
            operator(*workload.operands)
            return time.perf_counter() - start

        calls = [call() for _ in range(rounds)]
        pairs = [(prepared.checked(), prepared.plain(plain)) for _ in range(_WARM + _REPEATS * rounds)]
        return Cost(workload, pairs[_WARM:], statistics.median(calls))


def table(rounds: int) -> str:
    """All workloads."""
    head = f"{'operator':<26}{'checked / unchecked':>18}{'quartiles':>15}{'of the call':>13}{'unchecked':>15}"
    return "\n".join((head, *(cost(each, rounds).line() for each in workloads())))
