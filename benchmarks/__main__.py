"""``python -m benchmarks``: what the simulator costs, beside untiled NumPy and the same tiles in bare NumPy.

Times are the processor's; of what is compared, each takes its turn in every round, and the least of the rounds counts
(of the gather their median).
Then microseconds an instruction (also one on a tile that has an address, or was written in part) and an allocation, the
start of a new process with a kernel of some 400 instructions that runs once, the peak of its memory, what a user waits
for (`benchmarks.waiting`), and last the custom C++ operators: their kernels' time with all checks to that without any,
and the checks' part of a whole call.

Other measures, each with its own --help: ``python -m benchmarks.tolerance`` (what derived tolerances say of right and
mutated kernels), ``benchmarks.mutants`` (mistakes found), ``benchmarks.element_wise`` (instructions over NumPy calls),
``benchmarks.repair`` (mended), ``benchmarks.chip`` (published measurements of chips).
"""

from __future__ import annotations

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import argparse
import json
import math
import statistics
import sys
from pathlib import Path
from typing import Any

import nkitools
from benchmarks import measure, operators
from benchmarks.other_tree import InAnotherProcess
from benchmarks.table import Figures, markdown, table
from benchmarks.waiting import waits
from benchmarks.workloads import workloads
from nkitools.customop import BuildError

_MEAN, _MEMORY, _START = "geometric mean", "peak memory", "cold start"
_COMPARED = ("over NumPy", "over tiles", "rules / off")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15, help="rounds of each comparison (default 15)")
    parser.add_argument("--rules", choices=("error", "report", "off"), default="error", help="rule level")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    parser.add_argument(
        "--against",
        type=Path,
        metavar="FILE",
        help="compare with figures of --json, or with another checkout (a folder), which takes turns with this one",
    )
    parser.add_argument("--markdown", action="store_true", help="print the table of docs/explanation/speed.md instead")
    parser.add_argument("--no-operators", action="store_true", help="leave the custom C++ operators out")
    return parser.parse_args()


def measured(options: argparse.Namespace) -> list[Figures]:
    """Return the figures of this checkout, and of the other one where there is one."""
    here, trees = measure.InThisProcess(options.rules), [measure.HERE]
    sides: list[Any] = [here]
    if options.against is not None and options.against.is_dir():
        sides.append(InAnotherProcess(options.against, options.rules))
        trees.append(options.against.resolve())
    found: list[Figures] = [{} for _ in sides]
    waiting = [each.name for each in here.workloads.values() if each.waits_for_memory]
    for name in [*here.workloads, measure.ACTIONS]:
        for side in sides:
            side.prepare(name)
        rounds = [[side.round() for side in sides] for _ in range(options.rounds)]
        for figures, of_side in zip(found, zip(*rounds, strict=True), strict=True):
            figures[name] = measure.figures(name, measure.counted(of_side, waits_for_memory=name in waiting))
    for figures, tree in zip(found, trees, strict=True):
        figures[_MEAN] = _means(figures)
        figures[_START] = measure.cold_start(tree, max(1, options.rounds // 3))
        figures[_MEMORY] = {f"MiB {name}": measure.peak_memory(tree, name) for name in here.workloads}
    for side in sides[1:]:
        side.close()
    for figures, waited in zip(found, waits(trees, max(1, options.rounds // 3)), strict=True):
        figures |= waited
    return found


def _means(figures: Figures) -> dict[str, float]:
    """Return the geometric means over the workloads of the speed goal."""
    goals = [figures[each.name] for each in workloads() if each.is_goal]
    return {key: math.exp(statistics.fmean(math.log(each[key]) for each in goals)) for key in _COMPARED}


def _rounded(figures: Figures) -> Figures:
    """Return the figures with four digits, which is more than they are worth."""
    return {name: {key: float(f"{value:.4g}") for key, value in each.items()} for name, each in figures.items()}


def _kept(options: argparse.Namespace, tree: Path, figures: Figures) -> dict[str, Any]:
    """Return what a file holds of one checkout."""
    described = {"commit": measure.commit(tree), "machine": measure.machine(), "rounds": options.rounds}
    return described | {"figures": _rounded(figures)}


def main() -> None:
    """Measure, print the table, and keep the figures."""
    options = _options()
    before: Figures | None = None
    if options.against is not None and not options.against.is_dir():
        earlier = json.loads(options.against.read_text(encoding="utf-8"))
        before = earlier["figures"]
        if earlier["machine"] != measure.machine():
            print(f"The earlier figures are another machine's, {earlier['machine']}: compare ratios alone.\n")
    nkitools.install_stand_in(prefer="builtin")
    found = measured(options)
    if options.markdown:
        print(markdown(found[0], measure.machine()))
    else:
        print(table(found[0], found[1] if len(found) > 1 else before))
    if options.json is not None:
        sides = [_kept(options, measure.HERE, found[0])]
        if len(found) > 1:
            sides[0]["against"] = _kept(options, options.against, found[1])
        options.json.write_text(json.dumps(sides[0], indent=1) + "\n", encoding="utf-8")
    if not (options.no_operators or options.markdown):
        try:
            print(f"\n{operators.table(options.rounds)}")
        except BuildError as error:
            print(f"\noperators: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
