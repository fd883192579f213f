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
from functools import partial
from pathlib import Path

import pytest

import nkitools
from benchmarks.field.processes import Limits
from benchmarks.field.session import Choice, Field
from benchmarks.field.table import as_outcomes, as_plain, as_text, passes


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
    parser.add_argument("--collect-all", action="store_true", help="collect all files of the suite, those without a "
                        "test of the sample, too: where the cases of one file depend on the others")  # fmt: skip
    parser.add_argument("--timeout", type=float, default=60, help="seconds of the processor a test (default 60)")
    parser.add_argument("--memory", type=float, default=4, help="GiB a test (default 4; on Linux)")
    parser.add_argument("--jobs", type=int, default=1, help="tests at a time (default 1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every outcome, as it comes")
    parser.add_argument("--resume", action="store_true", help="keep the outcomes in the file of --json; run the others")
    at = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:at])
    if options.resume and options.json is None:
        parser.error("--resume goes on with the file of --json")
    return options, arguments[at + 1 :]


def _root_of(suite: Path) -> Path:
    """Return the checkout that a suite stands in; the suite's own folder where none shows."""
    folder = suite if suite.is_dir() else suite.parent
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder)


def _choice(options: argparse.Namespace) -> Choice:
    """Return which tests the options ask for."""
    sample: set[str] = set()
    if options.sample is not None:
        lines = options.sample.read_text(encoding="utf-8").splitlines()
        sample = {line.strip() for line in lines if line.strip() and not line.startswith("#")}
    known = as_outcomes(json.loads(options.json.read_text(encoding="utf-8"))) if _resumes(options) else []
    return Choice(sample, [outcome for outcome in known if outcome.kind != "absent"], options.collect_all)


def _resumes(options: argparse.Namespace) -> bool:
    return options.resume and options.json.exists()


def _keep(file: Path | None, field: Field) -> None:
    """Write the outcomes until now; a reader, or one who ends the session, never meets half of a file."""
    if file is not None:
        new = file.with_name(f"{file.name}.new")
        new.write_text(json.dumps(as_plain(field.found, field.uncollected), indent=1) + "\n", encoding="utf-8")
        new.replace(file)


def main(arguments: list[str]) -> int:
    """Run the suite, print the table, and keep the outcomes."""
    options, others = _options(arguments)
    suite = options.suite.resolve()
    if not suite.exists():
        print(f"no such suite: {options.suite}", file=sys.stderr)
        return 2
    root = (options.root or _root_of(suite)).resolve()
    choice = _choice(options)
    kept = options.json.resolve() if options.json is not None else None
    sys.path[:0] = [str(each.resolve()) for each in (root, root / "src", *options.path) if each.is_dir()]
    os.chdir(root)
    nkitools.install_stand_in(prefer="builtin")
    field = Field(
        Limits(options.timeout, int(options.memory * 1024)), max(1, options.jobs), choice, partial(_keep, kept)
    )
    ours = ["-o", "nki_stand_in=always", "-p", "no:cacheprovider", "-p", "no:randomly", "-q"]
    status = pytest.main(
        [str(suite), *ours, "--no-header", "--no-summary", "--continue-on-collection-errors", *others], plugins=[field]
    )
    if not field.found:
        print(*field.uncollected or ["no tests"], sep="\n")
        return int(status) or 1
    print(as_text(field.found, field.uncollected))
    _keep(kept, field)
    return 0 if passes(field.found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
