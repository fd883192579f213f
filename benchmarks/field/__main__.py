"""``python -m benchmarks.field SUITE``: a checkout of a suite of kernels, run against nkitools' own simulator.

SUITE is a folder or file of pytest tests that import nki or neuronxcc.nki. Each test runs in a process of its own, with
limits of time and memory. The table says how many went as the suite expects, which rule refused the others at which
line of a kernel, and which warnings there were. What stands after ``--`` goes to pytest. Exit code 0 where every test
went as the suite expects, else 1.
"""

from __future__ import annotations

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"  # a process that is forked has one thread

import argparse
import json
import sys
from pathlib import Path

import pytest

import nkitools
from benchmarks.field.processes import Limits
from benchmarks.field.session import Field
from benchmarks.field.table import as_plain, as_text, passes


def _options(arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """Return our own options, and those for pytest."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.field", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suite", type=Path, metavar="SUITE", help="folder or file of tests")
    parser.add_argument("--root", type=Path, help="the checkout (default: the nearest folder above with a .git)")
    parser.add_argument("--path", type=Path, action="append", default=[], help="a folder to import from, besides the "
                        "checkout and its src; may be given several times")  # fmt: skip
    parser.add_argument("--sample", type=Path, metavar="FILE", help="run only these ids, one a line, # comments")
    parser.add_argument("--timeout", type=float, default=60, help="seconds of the processor a test (default 60)")
    parser.add_argument("--memory", type=float, default=4, help="GiB a test (default 4; on Linux)")
    parser.add_argument("--jobs", type=int, default=1, help="tests at a time (default 1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every outcome")
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return parser.parse_args(arguments[:at]), arguments[at + 1 :]


def _root_of(suite: Path) -> Path:
    """Return the checkout that a suite stands in; the suite's own folder where none shows."""
    folder = suite if suite.is_dir() else suite.parent
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder)


def main(arguments: list[str]) -> int:
    """Run the suite, print the table, and keep the outcomes."""
    options, others = _options(arguments)
    suite = options.suite.resolve()
    if not suite.exists():
        print(f"no such suite: {options.suite}", file=sys.stderr)
        return 2
    root = (options.root or _root_of(suite)).resolve()
    sample: set[str] = set()
    if options.sample is not None:
        lines = options.sample.read_text(encoding="utf-8").splitlines()
        sample = {line.strip() for line in lines if line.strip() and not line.startswith("#")}
    kept = options.json.resolve() if options.json is not None else None
    sys.path[:0] = [str(each.resolve()) for each in (root, root / "src", *options.path) if each.is_dir()]
    os.chdir(root)
    nkitools.install_stand_in(prefer="builtin")
    field = Field(Limits(options.timeout, int(options.memory * 1024)), max(1, options.jobs), sample)
    ours = ["-o", "nki_stand_in=always", "-p", "no:cacheprovider", "-p", "no:randomly", "-q"]
    status = pytest.main(
        [str(suite), *ours, "--no-header", "--no-summary", "--continue-on-collection-errors", *others], plugins=[field]
    )
    if not field.found:
        print(*field.uncollected or ["no tests"], sep="\n")
        return int(status) or 1
    print(as_text(field.found, field.uncollected))
    if kept is not None:
        kept.write_text(json.dumps(as_plain(field.found, field.uncollected), indent=1) + "\n", encoding="utf-8")
    return 0 if passes(field.found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
