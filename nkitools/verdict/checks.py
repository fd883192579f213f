"""The checks that make the rows of a verdict, the quickest first: they run the kernel and ask its reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from nkitools.comparison.compared_arrays import compared
from nkitools.comparison.rule import EXACT
from nkitools.rules.finding import Finding
from nkitools.verdict.bench import JudgedRun
from nkitools.verdict.candidate import Ran
from nkitools.verdict.cases import Given, varied
from nkitools.verdict.child import Gone, Raised
from nkitools.verdict.dependence import belonging, dependence
from nkitools.verdict.rows import FAIL, PASS, UNKNOWN, Measured, Row
from nkitools.verdict.shapes import other_shapes_row
from nkitools.verdict.trial import Trial

_UNWRITTEN = frozenset({"NK403", "PL205", "CO106"})
_CHANGED = frozenset({"NK409", "NK406", "NK407"})
_SHAPES = 6  # other shapes that are tried


def of_first_run(trial: Trial) -> Iterator[Row]:
    """Yield the rows of the first run, that of the given arguments; the row of its outputs comes last."""
    ran = trial.first.ran
    if ran.half is not None:
        yield from _of_rules(trial, ran)
    run = trial.first = trial.bench.judge(trial.given, ran)
    outcome = {"pass": PASS, "undecided": UNKNOWN}.get(run.outcome, FAIL)
    if run.outcome == "finding" and all(each.outcome == "pass" for each in run.outputs) and not run.why:
        outcome = PASS  # the row of the rules says it
    tried = f"shapes {trial.given.shapes()}" if trial.given.arrays() else ""
    narrow = trial.bench.narrowed(run)
    if outcome == UNKNOWN and narrow:
        outcome = FAIL
    yield Row("given", outcome, tried, "" if outcome == PASS else narrow or run.sentence(), _numbers(run))


def _of_rules(trial: Trial, ran: Ran) -> Iterator[Row]:
    unwritten = [each for each in ran.broken if each.rule in _UNWRITTEN]
    changes = [each for each in ran.broken if each.rule in _CHANGED]
    broken = [each for each in ran.broken if each not in unwritten and each not in changes]
    chip = trial.bench.described.chip or ", ".join(trial.asked.chips)
    tried = f"all rules, {chip}" if chip else "all rules"
    yield _of_findings("rules", broken, f"{tried}; not looked at: {ran.left_out[:200]}" if ran.left_out else tried)
    if trial.is_nki and not ran.instructions:
        yield Row("written", FAIL, "", "no instruction was issued: nothing of the outputs is computed on the chip")
    else:
        yield _of_findings("written", unwritten, ", ".join(trial.half.outputs))
    yield _of_arguments(trial, changes)


def _of_findings(row: str, broken: list[Finding], tried: str) -> Row:
    said = "; ".join(f"{each.rule} at line {each.line}: {each.message}" for each in broken[:3])
    return Row(row, FAIL if broken else PASS, tried, said[:600], {"findings": [each.rule for each in broken]})


def _of_arguments(trial: Trial, changes: list[Finding]) -> Row:
    """Return the row about arguments that must not change; a kernel without outputs may change its arguments."""
    half, bench = trial.half, trial.bench
    mutable = {*bench.mutates, *bench.described.mutable}
    changed = {each for each in half.changed if each.partition("[")[0].partition(".")[0] not in mutable}
    results = changed if not half.outputs else set()  # a kernel that returns nothing writes its results there
    bad = sorted(changed - results)
    said = f"{', '.join(bad)} changed: name it in mutates= where it is to" if bad else ""
    return Row("arguments", FAIL if bad or changes else PASS, "", said or (changes[0].message if changes else ""))


def _numbers(run: JudgedRun) -> dict[str, Any]:
    """Return the errors of a run's outputs, as data."""
    rows = []
    for each in run.outputs:
        error, elements = each.max_error, each.elements
        row: dict[str, Any] = {
            "output": each.name,
            "max_error": error if np.isfinite(error) else None,
            "wrong": elements.count,
        }
        if elements.count:
            row["first"] = list(elements.first)
        rows.append(row)
    return {"outputs": rows}


def of_tolerance(trial: Trial) -> Iterator[Row]:
    """Yield the row with the tolerance of the first run, and how much of it the errors take."""
    rows, said = [], []
    for each in trial.first.outputs:
        elements = each.elements
        with np.errstate(all="ignore"):
            allowed = elements.atol + elements.rtol * np.abs(np.asarray(elements.expected, np.float64))
            share = np.where(elements.distance > 0, elements.distance / allowed, 0.0)
        used = float(np.max(share[np.isfinite(share)], initial=0.0))
        rows.append({"output": each.name, "rtol": elements.rtol, "atol": elements.atol, "used": round(used, 4)})
        said.append(
            f"{each.name}: rtol={elements.rtol:.2g}, atol={elements.atol:.2g}, the largest error takes {used:.0%}"
            + (f"; {each.why}" if each.is_loose else "")
        )
    how = "stated" if trial.bench.rule.is_stated else "by dtypes, sums and functions of the run"
    loose = any(each.is_loose for each in trial.first.outputs)
    yield Row("tolerance", PASS if rows and not loose else UNKNOWN, how, "; ".join(said), {"outputs": rows})


def of_isolation(trial: Trial) -> Iterator[Row]:
    """Yield the rows on whether the outputs follow from the arguments alone."""
    yield _same(trial, "repeat", "", "a second run")
    if trial.is_nki:
        yield _same(trial, "reference", "reference", "while the reference raises")
        yield _same(trial, "frames", "frames", "while all frames around hold other arrays")
        yield _same(trial, "memory", "memory", "arguments in other memory")


def _same(trial: Trial, row: str, how: str, tried: str) -> Row:
    ran = trial.bench.run(trial.given, how=how)
    if ran.half is None:
        return Row(row, FAIL, tried, f"the kernel raises there: {ran.error[:400]}")
    for name, values in trial.half.outputs.items():
        other = ran.half.outputs.get(name)
        if other is None or values.array.shape != other.array.shape:
            return Row(row, FAIL, tried, f"{name} has another form")
        found = compared(other.array, values.array, EXACT)
        if not found.agree:
            return Row(row, FAIL, tried, f"{found.count} of {found.size} elements are others: {_first(found, name)}")
    return Row(row, PASS, tried)


def _first(found: Any, name: str) -> str:
    return str(found.element(name, found.first)).replace("expected", "before")


def of_constants(trial: Trial) -> Iterator[Row]:
    """Yield the row with the constants that enter from outside."""
    outside = trial.bench.described.outside
    said = ", ".join(f"{name} = {value}" for name, value in sorted(outside.constants.items())[:12])
    yield Row("constants", PASS, "", said or "none", {"names": sorted(outside.constants), "arrays": [*outside.arrays]})


def of_values(trial: Trial) -> Iterator[Row]:
    """Yield the row on whether the outputs are right for other values in the same shapes."""
    bench = trial.bench
    if not bench.known.is_function:
        yield Row("values", UNKNOWN, "", "the reference is no function: nothing says what is right for other values")
        return
    if bench.known.is_drawn:
        calls: Iterator[Given] = (bench.ask_judge("drawn", trial.asked.seed + at) for at in (1, 2))
    else:
        calls = varied(trial.given, trial.asked.seed + 1)
    tried, open_ = [], []
    for given in calls:
        try:
            run = bench.tried(given)
        except Raised as error:
            open_.append(f"{given.said}: the reference raises {str(error)[:200]}")
            continue
        tried.append(given.said)
        if run.outcome == "pass":
            trial.right.append(run)
        elif given.is_decisive and run.outcome != "undecided":
            unread = "" if bench.known.is_drawn else belonging(trial)
            if not unread:
                yield Row("values", FAIL, given.said, run.sentence(), _numbers(run))
                return
            open_.append(f"{given.said}: {unread}")
            break
        else:
            open_.append(f"{given.said}: {run.sentence()}")
    why = "; ".join(open_)
    yield Row("values", PASS if trial.right and not open_ else UNKNOWN, "; ".join(tried), why[:600])


def of_depends(trial: Trial) -> Iterator[Row]:
    """Yield the row on whether the outputs depend on all that those of the reference depend on."""
    yield dependence(trial)


def of_shapes(trial: Trial) -> Iterator[Row]:
    """Yield the row on whether the outputs are right in other shapes."""
    yield other_shapes_row(trial, _SHAPES)


def of_chips(trial: Trial) -> Iterator[Row]:
    """Yield for each further chip the row on its rules."""
    for chip in trial.asked.chips[1:]:
        ran = trial.bench.run(
            trial.given, **({"chips": (chip,)} if trial.bench.described.kind == "pallas" else {"chip": chip})
        )
        if ran.half is None and not ran.broken:
            yield Row("rules", FAIL, chip, ran.error[:400])
        else:
            yield _of_findings("rules", ran.broken, f"all rules, {chip}")


def of_versions(trial: Trial) -> Iterator[Row]:
    """Yield the row with the NKI versions under which the kernel runs."""
    if not trial.is_nki:
        return
    runs: dict[str, bool] = {}
    why = ""
    for version in trial.bench.described.versions:
        ran = trial.bench.run(trial.given, how="version", nki_version=version)
        runs[version] = ran.half is not None and not ran.broken
        why = why or ("" if runs[version] else f"{version}: {_refusal(ran)}")
    good = [version for version, is_good in runs.items() if is_good]
    if not runs:
        return
    yield Row("versions", PASS if good else FAIL, ", ".join(runs), why, {"runs": good})


def _refusal(ran: Ran) -> str:
    return ran.error[:200] if not ran.broken else f"{ran.broken[0].rule}: {ran.broken[0].message[:200]}"


def of_costs(trial: Trial) -> Iterator[Row]:
    """Yield the rows of the estimate, the spills and the traffic."""
    if trial.bench.described.kind == "operator" or trial.bench.launch.get("ranks") is not None:
        return
    found = trial.bench.ask("measure")
    if not isinstance(found, Measured):
        yield Row("estimate", UNKNOWN, "", str(found)[:200])
        return
    between = f"{found.latency_us:.4g} us, between {found.lower_us:.4g} and {found.upper_us:.4g}"
    numbers = {"latency_us": found.latency_us, "lower_us": found.lower_us, "upper_us": found.upper_us}
    yield Row("estimate", PASS, "", between, numbers)
    if trial.bench.described.kind == "nki":
        spilled = f"{found.spilled_bytes:,} bytes spill" if found.spilled_bytes else "nothing spills"
        yield Row("spills", PASS, "", spilled, {"bytes": found.spilled_bytes})
        yield _of_traffic(found, trial.asked.max_traffic)


def _of_traffic(found: Measured, most: float | None) -> Row:
    ratio = found.hbm_bytes / found.floor_bytes if found.floor_bytes else None
    data = {"bytes": found.hbm_bytes, "floor": found.floor_bytes, "ratio": ratio}
    if ratio is None:
        return Row("traffic", PASS if most is None else UNKNOWN, "", f"{found.hbm_bytes:,} bytes", data)
    said = f"{found.hbm_bytes:,} bytes, {ratio:.2f} times the least"
    if most is None:
        return Row("traffic", PASS, "", said, data)
    return Row("traffic", PASS if ratio <= most else FAIL, f"at most {most:g} times", said, data)


Check = Callable[[Trial], Iterator[Row]]
AFTER_FIRST: tuple[tuple[Check, str], ...] = (
    (of_isolation, "repeat"),
    (of_constants, "constants"),
    (of_costs, "estimate"),
    (of_tolerance, "tolerance"),
    (of_values, "values"),
    (of_depends, "depends"),
    (of_chips, "rules"),
    (of_versions, "versions"),
    (of_shapes, "shapes"),
)
"""The checks after the first run, the quickest first; each with the name of the row that it has if it cannot run."""


def rows_of(trial: Trial) -> Iterator[Row]:
    """Yield the rows of all checks after the first run; a check that cannot run, or has no time left, is unknown."""
    for check, name in AFTER_FIRST:
        try:
            yield from check(trial)
        except Gone as error:
            yield Row(name, UNKNOWN, "", str(error))
        except (Raised, TypeError, ValueError) as error:  # of results that cannot be compared
            yield Row(name, UNKNOWN, "", str(error)[:300])
