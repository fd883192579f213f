"""``python -m benchmarks.official``: AWS's own simulator beside ours, on the examples of the rules and our kernels.

AWS's packages are installed from the index that AWS documents, into an environment of their own (Linux, x86-64). Where
they cannot be had the command says which and why, and ends with exit code 2. The disagreements go into a page of the
documentation, with the date and the packages' versions. A disagreement is no failure: exit code 0.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from benchmarks.official.section import section, write
from benchmarks.official.sides import examples, verdict_on

REPOSITORY = Path(__file__).parents[2]
# The setup pages of AWS's Neuron documentation name it.
INDEX = "https://pip.repos.neuron.amazonaws.com"
PACKAGES = ("nki", "neuronx-cc")
_VERSIONS = (
    "import importlib.metadata as m, json; from nkitools.targets.packages import aws_package as a; "
    "print(json.dumps({n: m.version(n) if n in {d.name for d in m.distributions()} else 'of unknown version' "
    "for n, i, p in (('nki', 'nki', 'isa'), ('neuronx-cc', 'neuronxcc', 'nki')) if a(i, p)}))"
)


class NotToBeHad(Exception):
    """AWS's packages cannot be had; the text says which, and why."""


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.official", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--index", default=INDEX, help="AWS's package index (default: %(default)s)")
    parser.add_argument("--environment", type=Path, default=REPOSITORY / ".venv-official", help="where to install them")
    parser.add_argument("--python", help="an interpreter that has them: nothing is installed")
    parser.add_argument("--examples", default="*/*.py", metavar="PATTERN", help="only these, such as 'NK10*/bad.py'")
    parser.add_argument("--no-kernels", action="store_true", help="leave the example kernels out")
    parser.add_argument("--page", type=Path, default=REPOSITORY / "docs/reference/practice.md", help="page to write")
    return parser.parse_args()


def installed(environment: Path, index: str) -> str:
    """Return an interpreter with AWS's packages and nkitools. Raises ``NotToBeHad``."""
    python = environment / "bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--editable", f"{REPOSITORY}[test]"], check=True)
    for package in PACKAGES:
        done = subprocess.run([*pip, "--extra-index-url", index, package], capture_output=True, text=True, check=False)
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if line.strip()]
            raise NotToBeHad(f"{package} cannot be had from {index}: {lines[-1] if lines else 'pip failed'}")
    return str(python)


def versions_of(python: str) -> dict[str, str]:
    """Return the versions of AWS's packages. Raises ``NotToBeHad`` where there are placeholders or none."""
    said = subprocess.run([python, "-c", _VERSIONS], capture_output=True, text=True, check=True, cwd=REPOSITORY)
    versions: dict[str, str] = json.loads(said.stdout)
    if not versions:
        raise NotToBeHad(f"{' and '.join(PACKAGES)}: {python} has none of AWS's own, or the placeholders of PyPI")
    return versions


def kernels_of(python: str) -> list[str]:
    """Return what the comparison of the example kernels' tests says."""
    command = [python, "-m", "pytest", "-q", "-m", "sim", "--nki-compare", "sim,official", "tests/kernels/nki"]
    lines = subprocess.run(command, capture_output=True, text=True, check=False, cwd=REPOSITORY).stdout.splitlines()
    start = next((number for number, line in enumerate(lines) if "nki agreement of" in line), None)
    return lines[-1:] if start is None else [line for line in lines[start + 1 :] if not line.startswith("=")]


def main() -> int:
    """Install, run both, write the page."""
    options = _options()
    try:
        python = options.python or installed(options.environment, options.index)
        versions = versions_of(python)
    except NotToBeHad as reason:
        print(f"not run: {reason}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as scratch:
        verdicts = [verdict_on(file, python, Path(scratch)) for file in examples(options.examples)]
    kernels = [] if options.no_kernels else kernels_of(python)
    write(options.page, section(verdicts, kernels, versions, datetime.date.today().isoformat()))
    for kind, count in Counter(verdict.kind for verdict in verdicts).items():
        print(f"{kind:<14}{count:>5}")
    print(f"the disagreements: {options.page}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
