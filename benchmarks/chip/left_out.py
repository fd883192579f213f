"""``python -m benchmarks.chip.left_out``: figures of estimates, each family and each problem left out of the choice.

Laws are of profiles, and no number is fitted to these latencies. What was chosen by looking at them are structures: how
many tiles a line fills, whether matmuls go ahead of one that waits, which loads count. Here every combination of them
estimates every kernel. The figures without a family are those of the combination that is the best on all other
families, those without a problem of the best on all other problems. Of equally good ones the plainer one counts, which
stands first. ``--all`` runs the kernels and stores their estimates.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from hashlib import sha256
from itertools import product
from math import log
from pathlib import Path
from statistics import mean
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.calibrate.__main__ import without_values
from benchmarks.chip.cases import plan
from benchmarks.chip.figures import Judged, by_family, family_of, judged_rows, time_of
from benchmarks.chip.judged import Result, run_of
from nkitools.record.run import Run
from nkitools.sweeps.local_engine import LocalEngine
from nkitools.timing import durations, queues, timeline
from nkitools.timing.estimate import latency_of
from nkitools.timing.loaded_once import loaded_once

STORED = Path(__file__).with_name("left_out.tsv")
Patch = Callable[[], Any]
Estimates = Mapping[str, Mapping[str, float]]  # in microseconds, of a case, by the name of a model


def _set(module: Any, name: str, value: Any) -> Patch:
    return lambda: patch.object(module, name, value)


def _none_left_out(*_: Any) -> Any:
    return np.zeros(0, np.int64), np.zeros(0, np.int64)


def _by_distance_alone(operations: Any, flow: Any, base: int, chip: Any) -> Any:
    return loaded_once(
        operations, flow, base, SimpleNamespace(psum_banks=0, sbuf_automatic_bytes=chip.sbuf_automatic_bytes)
    )


STRUCTURES: dict[str, tuple[dict[str, Patch], ...]] = {
    "modern": (
        {f"{count} tiles": _set(queues, "TILES", count) for count in (2, 3, 4)},
        {"matmuls in order": _set(timeline, "GO_AHEAD", (durations.LEFT_OUT,)), "matmuls go ahead": nullcontext},
    ),
    "legacy": (
        {
            "loads as written": _set(timeline, "loaded_once", _none_left_out),
            "loads by distance": _set(timeline, "loaded_once", _by_distance_alone),
            "loads by distance and banks": nullcontext,
        },
    ),
}
NOW = {"modern": "2 tiles, matmuls go ahead", "legacy": "loads by distance and banks"}


def models(dialect: str) -> dict[str, Sequence[Patch]]:
    """Return all combinations of structures by their names, the plainest first."""
    groups = [list(each.items()) for each in STRUCTURES[dialect]]
    return {", ".join(name for name, _ in each): [found for _, found in each] for each in product(*groups)}


def dialect_of(key: str) -> str:
    """Return the dialect of a case that was timed."""
    return "modern" if key.startswith("blocked") else "legacy"


def estimates(key: str) -> dict[str, float]:
    """Return the estimates of a case by every model of its dialect."""
    with without_values():
        return of_models(key, run_of(plan()[1][key]))


def of_models(key: str, run: Run) -> dict[str, float]:
    """Return the estimates of a case's run by every model of its dialect."""
    found = {}
    for name, patches in models(dialect_of(key)).items():
        with ExitStack() as stack:
            for each in patches:
                stack.enter_context(each())
            found[name] = float(f"{latency_of(run):.6g}")
    return found


def timed() -> list[Judged]:
    """Return the rows of all families that were timed, without estimates; of the 360 MLPs a fixed fifth."""
    rows, cases = plan()
    families = by_family(judged_rows(rows, dict.fromkeys(cases, Result("correct"))))
    families["MLP, legacy"] = sorted(
        families["MLP, legacy"], key=lambda each: sha256(each.row.keys[0].encode()).digest()
    )
    return [each for name, found in families.items() for each in found[:: 5 if name == "MLP, legacy" else 1]]


def by_model(judged: Judged, found: Estimates, model: str) -> Judged:
    """Return a row with the estimates of a model."""
    return judged._replace(results=tuple(Result("correct", us=str(found[key][model])) for key in judged.row.keys))


def error(judged: Iterable[Judged], found: Estimates, model: str) -> float:
    """Return the mean distance of a model's estimates from measured times, each family with the same weight."""
    families: dict[str, list[float]] = {}
    for each in judged:
        chip, mine = by_model(each, found, model).times
        families.setdefault(family_of(each), []).append(abs(log(mine / chip)))
    return mean(mean(each) for each in families.values())


def best(judged: Sequence[Judged], found: Estimates, dialect: str) -> str:
    """Return the model that is the best on some rows; the plainer one of those that are equally good."""
    return min(models(dialect), key=lambda model: round(error(judged, found, model), 6))


def problem_of(judged: Judged) -> str:
    """Return the shapes that a row was measured with."""
    cells = judged.row.cells
    return cells["case"].split()[0] if judged.row.part == "blocked" else cells["shapes"]


def read() -> dict[str, dict[str, float]]:
    """Return the stored estimates."""
    with STORED.open() as file:
        rows = [(row["key"], map(float, row["us"].split())) for row in csv.DictReader(file, delimiter="\t")]
    return {key: dict(zip(models(dialect_of(key)), each, strict=True)) for key, each in rows}


def lines(found: Estimates) -> list[str]:
    """Return the figures of each family: in sample, without its family, and without each of its problems in turn."""
    shown = []
    for family, mine in by_family(timed()).items():
        dialect = dialect_of(mine[0].row.keys[0])
        same = [each for each in timed() if dialect_of(each.row.keys[0]) == dialect]
        chosen = best([each for each in same if family_of(each) != family], found, dialect)
        apart: list[Judged] = []
        of_problems = set()
        for problem in dict.fromkeys(map(problem_of, mine)):
            model = best([each for each in same if problem_of(each) != problem], found, dialect)
            of_problems.add(model)
            apart += [by_model(each, found, model) for each in mine if problem_of(each) == problem]
        for what, rows in (
            ("in sample", [by_model(each, found, NOW[dialect]) for each in mine]),
            (f"without its family ({chosen})", [by_model(each, found, chosen) for each in mine]),
            (f"without each problem ({'; '.join(sorted(of_problems))})", apart),
        ):
            shown.append(f"{family}, {len(rows)} rows, {what}: {time_of(family, 'trn2', rows).agreement}")
    return shown


def main() -> int:
    """Print the figures; with ``--all`` of new estimates, which are stored."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chip.left_out", description=__doc__)
    parser.add_argument("--all", action="store_true", help="run all kernels, and store their estimates")
    parser.add_argument("--workers", type=int, default=2, help="processes (default 2)")
    options = parser.parse_args()
    if options.all:
        keys = list(dict.fromkeys(key for each in timed() for key in each.row.keys))
        found = {}
        for ended in LocalEngine(workers=options.workers, timeout=600).run(estimates, keys):
            if ended.reason:
                raise SystemExit(f"{ended.task}: {ended.reason}: {ended.error}")
            found[ended.task] = ended.result
        text = [f"{key}\t{' '.join(f'{us:.6g}' for us in found[key].values())}\n" for key in keys]
        STORED.write_text("key\tus\n" + "".join(text))  # by every model of its dialect, in their order
    print("\n".join(lines(read())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
