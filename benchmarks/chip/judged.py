"""A case, run and estimated; and the results of cases, kept in a table."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

import nkitools
from benchmarks.chip.cases import GENERATOR, Case, Filled, plan
from nkitools.record.run import Run

STORED = Path(__file__).parent / "results.tsv"


class Result(NamedTuple):
    """What nkitools says of a case: its verdict, the rules of errors and of warnings, time, HBM bytes, bits."""

    verdict: str
    errors: str = ""
    warnings: str = ""
    us: str = ""
    bytes: str = ""
    bits: str = ""  # of sums: of each row that was published, eight hexadecimal digits

    @property
    def rules(self) -> set[str]:
        """Return the rules of errors and warnings."""
        return {*self.errors.split(), *self.warnings.split()}


def judged(key: str) -> Result:
    """Run a case. A kernel that cannot be computed is refused, by the error's rule or type."""
    case = plan()[1][key]
    try:
        return _judged(key, case)
    except Exception as error:
        finding = getattr(error, "finding", None)
        return Result("refused", type(error).__name__ if finding is None else finding.rule)


def run_of(case: Case) -> Run:
    """Return the run of a case."""
    nkitools.install_stand_in(prefer="builtin")
    kernel = getattr(import_module(f"benchmarks.chip.kernels.{case.module}"), case.name)
    kernel = kernel(*case.made_by) if case.made_by else kernel
    random = np.random.default_rng(0)
    arguments = [made(each, random) if isinstance(each, Filled) else each for each in case.arguments]
    return nkitools.simulate(kernel, *arguments, chip=case.chip, rules="report", sum_order=case.sum_order)


def _judged(key: str, case: Case) -> Result:
    run = run_of(case)
    found = {
        severity: " ".join(sorted({each.rule for each in run.findings if each.severity == severity}))
        for severity in ("error", "warning")
    }
    estimate = run.estimate()
    return Result(
        "refused" if found["error"] else "correct",
        found["error"],
        found["warning"],
        f"{estimate.latency_us:.6g}",
        str(sum(each.read_bytes + each.written_bytes for each in estimate.traffic)),
        _bits(key, run.outputs) if case.module == "sums" else "",
    )


def made(argument: Filled, random: np.random.Generator) -> Any:
    """Return an argument as an array."""
    if argument.content == "published":
        seed, rows, width = argument.shape
        random = np.random.default_rng(seed)
        for _ in range(2):
            random.random((128, 512), np.float32)  # the publisher's script drew two others before
        return np.ascontiguousarray(random.random((rows, GENERATOR[1]), np.float32)[:, :width])
    dtype = np.dtype(getattr(ml_dtypes, argument.dtype, argument.dtype))
    if argument.content == "zeros":
        return np.zeros(argument.shape, dtype)
    if argument.content == "normal":
        return random.standard_normal(argument.shape).astype(dtype)
    sign = -1 if argument.content == "falling" else 1
    return (sign * 0.05 * random.random(argument.shape)).astype(dtype)


def _bits(key: str, outputs: Any) -> str:
    words = np.asarray(outputs).view(np.uint32)[:, 0]
    return " ".join(f"{words[int(row.cells['row'])]:08x}" for row in plan()[0] if key in row.keys)


def read(path: Path = STORED) -> dict[str, Result]:
    """Return the results of a table by their keys."""
    with path.open() as file:
        return {row.pop("key"): Result(**row) for row in csv.DictReader(file, delimiter="\t")}


def write(results: Mapping[str, Result], keys: Iterable[str], path: Path = STORED) -> None:
    """Write the results of some keys as a table."""
    lines = [("key", *Result._fields), *((key, *results[key]) for key in keys)]
    path.write_text("".join("\t".join(line) + "\n" for line in lines))
