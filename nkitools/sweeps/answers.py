"""The answers of a sweep: passing regions, groups of failures, the fastest cases, and regressions."""

from __future__ import annotations

import math
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nkitools.sweeps.store import Store

Row = Mapping[str, Any]

_SLOWER = 1.05  # times the earlier estimate, from which a case counts as slower
_MOST_STEPS = 16  # of an axis of the map; beyond, neighbours are one step


@dataclass(frozen=True)
class Cluster:
    """Failures alike: of one outcome, at one rule and line, or with one message."""

    outcome: str
    what: str
    count: int
    smallest: Row


@dataclass(frozen=True)
class PassMap:
    """The numbers of passing cases and of all, by the values of two names."""

    names: tuple[str, str]
    rows: list[str]
    columns: list[str]
    cells: dict[tuple[str, str], tuple[int, int]]


@dataclass(frozen=True)
class Answers:
    """The answers of one sweep.

    ``fastest``: of each chip the passing cases that no other one beats in time and error, the fastest first.
    ``regressions``: earlier and present row of the cases that passed earlier and fail now, or that are slower by a
    twentieth or more. ``left_out``: how many elements comparisons have left out, in words.
    """

    sweep: Mapping[str, Any]
    outcomes: dict[str, int]
    map: PassMap | None
    clusters: list[Cluster]
    fastest: dict[str, list[Row]]
    earlier: Mapping[str, Any] | None = None
    regressions: list[tuple[Row, Row]] = field(default_factory=list)
    left_out: str = ""


def answers_of(
    store: Store, sweep: Mapping[str, Any], names: Sequence[str] = (), earlier: Mapping[str, Any] | None = None
) -> Answers:
    """Return the answers of a sweep of a store. ``names``: the two of the map. ValueError for names that it has not."""
    rows = store.rows(sweep["sweep"])
    before = [] if earlier is None else store.rows(earlier["sweep"])
    return Answers(
        sweep,
        dict(Counter(row["outcome"] for row in rows)),
        pass_map(rows, names),
        clusters(rows),
        {chip: pareto(own) for chip, own in sorted(by(rows, "chip").items()) if pareto(own)},
        earlier,
        regressions(before, rows),
        left_out_of(rows),
    )


def left_out_of(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return in words what comparisons left out, tied elements, and how many were loose; '' if nothing."""
    known = list(rows)
    counts = [row["left_out"] for row in known if row["left_out"]]
    elements = f"{sum(counts)} element{'s' * (sum(counts) != 1)}"
    said = [f"{elements} left out of comparisons, in {len(counts)} of the cases (tied choices)"] if counts else []
    loose = sum(row["outcome"] == "pass" and bool(row["error"]) for row in known)
    said += [f"{loose} of the cases pass by a loose tolerance"] if loose else []
    return "; ".join(said)


def latest_sweeps(store: Store) -> list[tuple[dict[str, Any], dict[str, Any] | None]]:
    """Return the last sweep of each kernel, and the last one before it whose kernel was another, if there is one."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for each in store.sweeps():
        found[each["file"], each["kernel"]].append(each)
    pairs = []
    for sweeps in found.values():
        *before, last = sweeps
        pairs.append((last, next((each for each in reversed(before) if each["code"] != last["code"]), None)))
    return pairs


def pass_map(rows: Sequence[Row], names: Sequence[str] = ()) -> PassMap | None:
    """Return the map over two names; without names over those whose values separate passing from failing cases most."""
    known = [*dict.fromkeys(name for row in rows for name in row["values"]), "chip"]
    for name in names:
        if name not in known:
            raise ValueError(f"{name} is no name of this sweep; it has {', '.join(known)}")
    values = {name: [_value(row, name) for row in rows] for name in known}
    varied = [name for name in known if len({_key(each) for each in values[name]}) > 1]
    passed = [row["outcome"] == "pass" for row in rows]
    if len(names) != 2:
        ranked = sorted(varied, key=lambda name: -_separation(values[name], passed))
        names = [*names, *(name for name in ranked if name not in names)][:2]
    if len(names) < 2:
        return None
    steps = {name: _steps(values[name]) for name in names}
    first, second = names
    cells: dict[tuple[str, str], tuple[int, int]] = {}
    for one, other, good in zip(values[first], values[second], passed, strict=True):
        place = steps[first][_key(one)], steps[second][_key(other)]
        count, total = cells.get(place, (0, 0))
        cells[place] = count + good, total + 1
    down, across = (list(dict.fromkeys(steps[name].values())) for name in names)
    return PassMap((first, second), down, across, cells)


def clusters(rows: Iterable[Row]) -> list[Cluster]:
    """Return the failures by outcome, and rule and line or message; the largest cluster first."""
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if row["outcome"] != "pass":
            found[row["outcome"], signature(row)].append(row)
    made = [Cluster(outcome, what, len(own), min(own, key=size)) for (outcome, what), own in found.items()]
    return sorted(made, key=lambda each: -each.count)


def signature(row: Row) -> str:
    """Return the text by which failures are grouped: outcome, rule and line."""
    errors = [each for each in row["findings"] if each["severity"] == "error"]
    if row["outcome"] == "finding" and errors:
        return f"{errors[0]['rule']} at {os.path.basename(errors[0]['file'])}:{errors[0]['line']}"
    if row["outcome"] == "wrong":
        return "differs from the reference"
    return str(row["error"].splitlines()[0]) if row["error"] else row["outcome"]


def size(row: Row) -> tuple[float, str]:
    """Return the size of a case, for sorting: the sum of its numbers' magnitudes on a logarithmic scale."""
    numbers = [each for each in row["values"].values() if isinstance(each, (int, float)) and not isinstance(each, bool)]
    return sum(math.log1p(abs(each)) for each in numbers), str(row["values"])


def pareto(rows: Iterable[Row]) -> list[Row]:
    """Return the Pareto front of the passing cases by time and error, the fastest first."""
    known = [row for row in rows if row["outcome"] == "pass" and row["estimate_us"] is not None]
    front: list[Row] = []
    for row in sorted(known, key=lambda each: (each["estimate_us"], _error(each))):
        if not front or _error(row) < _error(front[-1]):
            front.append(row)
    return front


def regressions(before: Iterable[Row], now: Iterable[Row]) -> list[tuple[Row, Row]]:
    """Return the cases that passed and now fail, then those that became slower, the largest ratio first."""
    earlier = {row["case_key"]: row for row in before}
    pairs = [(earlier[row["case_key"]], row) for row in now if row["case_key"] in earlier]
    lost = [(old, new) for old, new in pairs if old["outcome"] == "pass" != new["outcome"]]
    slower = [
        (old, new)
        for old, new in pairs
        if old["outcome"] == new["outcome"] == "pass"
        and old["estimate_us"]
        and new["estimate_us"]
        and new["estimate_us"] > _SLOWER * old["estimate_us"]
    ]
    return lost + sorted(slower, key=lambda pair: pair[0]["estimate_us"] / pair[1]["estimate_us"])


def by(rows: Iterable[Row], name: str) -> dict[Any, list[Row]]:
    """Return rows by a field."""
    found: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        found[row[name]].append(row)
    return found


def _error(row: Row) -> float:
    return math.inf if row["max_error"] is None else float(row["max_error"])


def _value(row: Row, name: str) -> Any:
    return row["chip"] if name == "chip" else row["values"].get(name)


def _key(value: Any) -> Any:
    return repr(value) if isinstance(value, (list, dict)) else value


def _separation(values: Sequence[Any], passed: Sequence[bool]) -> float:
    """Return the largest difference between the shares of passing cases of a name's values."""
    counted: dict[Any, list[int]] = defaultdict(lambda: [0, 0])
    for value, good in zip(values, passed, strict=True):
        counted[_key(value)][0] += good
        counted[_key(value)][1] += 1
    shares = [good / total for good, total in counted.values()]
    mean = sum(passed) / len(passed)
    weights = [total / len(passed) for _, total in counted.values()]
    return sum(weight * (share - mean) ** 2 for weight, share in zip(weights, shares, strict=True))


def _steps(values: Sequence[Any]) -> dict[Any, str]:
    """Return the step of the map that each value belongs to, in order."""
    unique = list({_key(each): each for each in values})
    if all(isinstance(each, (int, float)) for each in unique):
        unique.sort()
    width = -(-len(unique) // _MOST_STEPS)
    steps: dict[Any, str] = {}
    for start in range(0, len(unique), width):
        group = unique[start : start + width]
        text = str(group[0]) if len(group) == 1 else f"{group[0]}..{group[-1]}"
        steps |= dict.fromkeys(group, text)
    return steps
