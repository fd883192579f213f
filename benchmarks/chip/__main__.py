"""``make chip``: nkitools beside published measurements of chips, by verdict, bytes, bits and time.

The kernels behind the tables are run in the simulator. The ordinary run takes all small kernels and sums and, of each
family of the others and of each verdict in it, a fixed fifth (at least three), and says where its results are not those
that are stored.
``--all`` runs everything, stores the results, and writes the tables of README.md and docs/explanation/fidelity.md anew.
"""

from __future__ import annotations

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import argparse
import sys
import time

from benchmarks.chip.cases import plan, subset
from benchmarks.chip.figures import Figure, figures, judged_rows
from benchmarks.chip.judged import Result, judged, read, write
from benchmarks.chip.pages import documents
from nkitools.sweeps.local_engine import LocalEngine


def run(keys: list[str], workers: int) -> dict[str, Result]:
    """Judge cases in processes of their own."""
    found: dict[str, Result] = {}
    for ended in LocalEngine(workers=workers, timeout=600).run(judged, keys):
        if ended.reason:
            raise SystemExit(f"{ended.task}: {ended.reason}: {ended.error}")
        found[ended.task] = ended.result
        if len(found) % 50 == 0:
            print(f"{len(found)} of {len(keys)} kernels", file=sys.stderr, flush=True)
    return found


def show(found: list[Figure]) -> None:
    """Print the figures."""
    for each in found:
        print(f"{each.kind:9}{each.chip:6}{each.count:>22}  {each.what}: {each.agreement}")


def changed(results: dict[str, Result], stored: dict[str, Result]) -> list[str]:
    """Return a line for each result that is not the stored one."""
    return [f"{key}: {each} was {stored.get(key)}" for key, each in results.items() if stored.get(key) != each]


def main() -> int:
    """Judge, print, and write what is to be written. Exit code 1 where stored results are others."""
    parser = argparse.ArgumentParser(
        prog="make chip", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--all", action="store_true", help="run all kernels, store their results, write the tables")
    parser.add_argument("--stored", action="store_true", help="run nothing: the figures of the stored results")
    parser.add_argument("--workers", type=int, default=2, help="processes (default 2)")
    options = parser.parse_args()
    rows, cases = plan()
    began, stored = time.monotonic(), read()
    taken = subset()
    keys = [] if options.stored else [key for key in cases if options.all or key in taken]
    results = stored if options.stored else run(keys, options.workers)
    if options.all:
        write(results, cases)
    show(figures(judged_rows(rows, results)))
    print(f"{len(keys)} kernels in {time.monotonic() - began:.0f} s", file=sys.stderr)
    different = [] if options.all else changed(results, stored)
    for line in different:
        print(f"not as stored: {line}")
    if different:
        print("run it with --all, which stores the results and writes the tables")
        return 1
    for path, text in documents(judged_rows(rows, results if options.all else stored)).items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
