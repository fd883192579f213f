"""``python -m benchmarks.calibrate SOURCES``: estimates of the published kernels beside their latencies.

SOURCES is a folder of git directories ``owner+name/repo``. With ``--fit`` the knobs are fitted anew, and written beside
the estimates into the room of timing. With ``--keep DIR`` runs are kept, and taken from there the next time.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import log
from pathlib import Path
from typing import Any

import numpy as np

import nkitools
from benchmarks.calibrate.cases import CASES
from benchmarks.calibrate.fit import fitted
from benchmarks.calibrate.single import SINGLE
from nkitools.facts.generations import generation_of
from nkitools.issue.plan import Plan
from nkitools.record.run import Run
from nkitools.timing.knobs import BY_GENERATION, KNOBS, Knobs, Values, knobs_of
from nkitools.timing.likeness import likeness
from nkitools.timing.timeline import timeline_of

HERE = Path(__file__).parent
TIMING = Path(nkitools.__file__).parent / "timing"
_STEP = 1.1  # of a knob, for the slope of each estimate
_COLUMNS = [
    "id",
    "family",
    "chip",
    "shape",
    "dtype",
    "published_us",
    "estimate_us",
    "left_out_us",
    "counts",
    "variants_of",
    "overlap",
    "tile_elements",
    "source",
]


@contextmanager
def without_values() -> Iterator[None]:
    """Let instructions compute nothing: a record has no values, and the large kernels would take minutes."""
    number = Plan.number

    def numbered(plan: Plan) -> None:
        plan.compute = lambda *arrays, **named: None
        number(plan)

    Plan.number = numbered  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        Plan.number = number  # type: ignore[method-assign]


def run_of(id: str, chip: str, sources: Path, folder: Path) -> Run:
    """Return the run of a published kernel, out of ``folder`` where it is kept there."""
    kept = folder / f"{id.replace('/', '__')}.run"
    if kept.exists():
        return nkitools.load_run(kept)
    with without_values():
        if id in SINGLE:
            run = SINGLE[id][0]()
        else:
            args, kwargs = CASES[id].arguments()
            run = nkitools.simulate(CASES[id].load(sources, folder, id), *args, chip=chip, rules="off", **kwargs)
    run.outputs = None  # type: ignore[assignment]  # not to be saved
    run.save(kept)
    return run


def estimate(id: str, run: Run, values: Values | None = None) -> float:
    """Return the estimate of a published latency in microseconds."""
    chip = generation_of(run.chip)
    knobs: Knobs = knobs_of(chip, values)
    timeline = timeline_of(run, chip, knobs)
    if id in SINGLE:
        return SINGLE[id][1](timeline, knobs)
    return timeline.span_ns / 1e3 + knobs.launch_us


def ranges_of(run: Run) -> dict[str, str]:
    """Return the columns that say what else a run is like."""
    chip = generation_of(run.chip)
    like = likeness(timeline_of(run, chip, knobs_of(chip)), 0.0)
    return {"overlap": f"{like.overlap:.4g}", "tile_elements": f"{like.tile_elements:.6g}"}


def slopes_of(id: str, run: Run, values: Values, start: float, keys: list[str]) -> list[float]:
    """Return how the logarithm of an estimate changes with that of each knob."""
    own = generation_of(run.chip).short_name
    found = []
    for key in keys:
        generation = key.partition("@")[2]
        if generation and generation != own:
            found.append(0.0)
            continue
        found.append(log(estimate(id, run, moved(values, {key: _STEP})) / start) / log(_STEP))
    return found


def moved(values: Values, factors: Mapping[str, float]) -> Values:
    """Return the knobs with some of them multiplied."""
    result: Values = json.loads(json.dumps(values))
    for key, factor in factors.items():
        name, _, generation = key.partition("@")
        group = result["by_generation"][generation] if generation else result["common"]
        group[name] = float(f"{group[name] * factor:.4g}")
    return Values(**result)


def main(arguments: list[str]) -> int:
    """Print the table, and write it where it was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calibrate", description=__doc__)
    parser.add_argument("sources", type=Path, metavar="SOURCES")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep runs here")
    parser.add_argument("--fit", action="store_true", help="fit the knobs, and write them and the estimates")
    options = parser.parse_args(arguments)
    published = list(csv.DictReader((HERE / "published.tsv").read_text().splitlines(), delimiter="\t"))
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        table = calibrated(published, options.sources, folder, fits=options.fit)
    for row in table:
        error = float(row["estimate_us"]) / float(row["published_us"]) - 1
        print(f"{row['id']:46}{row['published_us']:>11}{row['estimate_us']:>11}{error:>8.1%}")
    if options.fit:
        with (TIMING / "calibration.tsv").open("w", newline="") as file:
            writer = csv.DictWriter(file, _COLUMNS, delimiter="\t", lineterminator="\n", extrasaction="ignore")
            writer.writeheader()
            writer.writerows(table)
    return 0


def calibrated(published: list[dict[str, str]], sources: Path, folder: Path, *, fits: bool) -> list[dict[str, Any]]:
    """Return the rows with their estimates, by the fitted knobs or those that are there."""
    values = KNOBS
    keys = [*values["common"], *(f"{name}@{chip}" for chip, own in BY_GENERATION.items() for name in own)]
    errors, slopes = [], []
    for row in published:
        run = run_of(row["id"], row["chip"], sources, folder)
        start = estimate(row["id"], run)
        print(f"{row['id']}: {start:.4g} us, published {row['published_us']} us", file=sys.stderr, flush=True)
        errors.append(log(start / float(row["published_us"])))
        counts = fits and row["counts"] == "yes"
        slopes.append(slopes_of(row["id"], run, values, start, keys) if counts else [0.0] * len(keys))
    if not fits:
        return [{**row, **_estimates(row, error, error)} for row, error in zip(published, errors, strict=True)]
    logs, matrix = np.array(errors), np.array(slopes)
    counted = [at for at, row in enumerate(published) if row["counts"] == "yes"]
    whole = fitted(logs, matrix, counted)
    final = moved(values, dict(zip(keys, whole.factors.tolist(), strict=True)))
    (TIMING / "knobs.json").write_text(json.dumps(final, indent=2) + "\n")
    table = []
    for row in published:
        others = [each for each in counted if published[each]["family"] != row["family"]]
        apart = fitted(logs, matrix, others).factors.tolist()
        run = run_of(row["id"], row["chip"], sources, folder)
        left_out = estimate(row["id"], run, moved(values, dict(zip(keys, apart, strict=True))))
        exact = estimate(row["id"], run, final)
        latency = float(row["published_us"])
        table.append({**row, **ranges_of(run), **_estimates(row, log(exact / latency), log(left_out / latency))})
        print(f"{row['id']}: {exact:.4g} us, {left_out:.4g} us without its family", file=sys.stderr, flush=True)
    return table


def _estimates(row: dict[str, str], error: float, left_out: float) -> dict[str, str]:
    latency = float(row["published_us"])
    return {"estimate_us": f"{latency * np.exp(error):.4g}", "left_out_us": f"{latency * np.exp(left_out):.4g}"}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
