"""``python -m benchmarks``: the ratio of the simulator's time to untiled NumPy's, on one core, in one process.

Beside it, what the rules cost: the ratio to the simulator's time with ``rules="off"``. Below it the custom C++
operators: their kernels' time with all checks to that without any, and how much of a whole call the checks are. What is
compared takes turns, and each ratio is the median over the rounds: a machine whose speed drifts disturbs all alike.
"""

from __future__ import annotations

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import argparse
import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import nkitools
from benchmarks import operators
from benchmarks.workloads import Workload, workloads
from nkitools.customop import BuildError


def _seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _ratios(workload: Workload, rules: str, pairs: int) -> tuple[list[float], list[float]]:
    """Simulator over NumPy, and over itself without rules, round by round; a warm-up compares the results."""

    def simulated(level: str = rules) -> Any:
        return nkitools.simulate(workload.kernel, *workload.inputs, rules=level).outputs

    def bare() -> Any:
        return simulated("off")

    def plain() -> Any:
        return workload.plain(*workload.inputs)

    for one in (simulated(), bare()):
        np.testing.assert_allclose(one, plain(), rtol=0, atol=workload.tolerance)
    rounds = [(_seconds(simulated), _seconds(bare), _seconds(plain)) for _ in range(pairs)]
    return [one / numpy for one, _, numpy in rounds], [one / off for one, off, _ in rounds]


def _overhead(pairs: int) -> float:
    """Seconds per instruction that the simulator adds to NumPy's own work, for a tile of one element a partition."""
    import nki
    import nki.isa as nisa
    import nki.language as nl

    count = 20_000

    @nki.jit
    def copies(x: Any) -> Any:
        out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
        first = nl.load(x)
        second = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        for _ in range(count):
            nisa.tensor_copy(dst=second, src=first)
        nl.store(out, second)
        return out

    x = np.ones((128, 1), np.float32)
    source, destination = np.ones((128, 1), np.float32), np.empty((128, 1), np.float32)

    def bare() -> None:
        for _ in range(count):
            np.copyto(destination, source)

    nkitools.simulate(copies, x)
    return statistics.median(
        (_seconds(lambda: nkitools.simulate(copies, x)) - _seconds(bare)) / count for _ in range(pairs)
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--pairs", type=int, default=15, help="rounds per workload (default 15)")
    parser.add_argument("--rules", choices=("error", "report", "off"), default="error", help="rule level")
    options = parser.parse_args()
    nkitools.install_stand_in(prefer="builtin")
    medians, costs = [], []
    print(f"{'workload':<26}{'simulator / NumPy':>18}{'min':>8}{'max':>8}{'rules / off':>14}")
    for workload in workloads():
        ratios, of_rules = _ratios(workload, options.rules, options.pairs)
        medians.append(statistics.median(ratios))
        costs.append(statistics.median(of_rules))
        print(f"{workload.name:<26}{medians[-1]:>17.2f}x{min(ratios):>8.2f}{max(ratios):>8.2f}{costs[-1]:>13.2f}x")
    mean, cost = (math.exp(statistics.fmean(math.log(ratio) for ratio in each)) for each in (medians, costs))
    print(f"{'geometric mean':<26}{mean:>17.2f}x{'':>16}{cost:>13.2f}x")
    print(f"overhead per instruction: {_overhead(options.pairs) * 1e6:.1f} microseconds")
    try:
        print(f"\n{operators.table(options.pairs)}")
    except BuildError as error:
        print(f"\noperators: {error}")


if __name__ == "__main__":
    main()
