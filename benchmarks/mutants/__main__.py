"""``python -m benchmarks.mutants``: systematic mistakes in the example kernels, and how many of them are noticed.

Each mutant is linted and put to the tests of its kernel, by their own inputs, references and tolerances. Exit code 0
where at least 95 % of those that are mistakes are noticed and every survivor is explained in survivors.toml, else 1.
"""

from __future__ import annotations

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import argparse
import sys

from benchmarks.mutants.cases import CASES
from benchmarks.mutants.figures import as_json, as_text, passes
from benchmarks.mutants.own_tests import own_tests
from benchmarks.mutants.runner import ROOT, measure
from benchmarks.mutants.survivors import explanations, judge
from nkitools.edits.candidates import KINDS


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for option, names, what in (
        ("--kernel", CASES, "only this kernel, such as legacy.softmax; may be given several times"),
        ("--operator", KINDS, "only this kind of mistake; may be given several times"),
    ):
        parser.add_argument(option, choices=sorted(names), action="append", default=[], metavar="NAME", help=what)
    parser.add_argument("--format", choices=("text", "json"), default="text", help="json has every mutant")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="mutants at a time (default: as many as CPUs)"
    )
    parser.add_argument("--operators", action="store_true", help="list the kinds of mistakes and stop")
    parser.add_argument(
        "--own-tests", action="store_true", help="what nkitools mutate says of the gallery's own tests; 90 %% is enough"
    )
    return parser.parse_args()


def _progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{done} of {total} mutants", end="" if done < total else "\n", file=sys.stderr)


def main() -> int:
    """Measure and show."""
    options = _options()
    if options.operators:
        for name, kind in KINDS.items():
            print(f"{name:<20}{kind.mistake}")
        return 0
    if options.own_tests:
        return 0 if own_tests(ROOT, options.kernel, options.jobs) else 1
    known = explanations()
    results = measure(options.kernel, options.operator, jobs=options.jobs, progress=_progress)
    judgement = judge(results, known)
    print((as_json if options.format == "json" else as_text)(results, judgement))
    return 0 if passes(results, judgement) else 1


if __name__ == "__main__":
    sys.exit(main())
