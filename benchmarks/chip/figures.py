"""The figures of agreement: what rows of measurements and results of nkitools have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from statistics import correlation, median
from statistics import quantiles as statistics_quantiles
from typing import NamedTuple

from benchmarks.chip.cases import Row
from benchmarks.chip.judged import Result
from benchmarks.chip.laws import met

_FAMILIES = {
    "attention baseline": "attention in three phases",
    "attention fused": "attention in one",
    "mlp baseline": "MLP in two kernels",
    "mlp fused_pwl": "MLP in one kernel",
    "mlp fused_taylor": "MLP in one kernel, gelu by hand",
}
FAR = 0.1  # two times are in an order if they are further apart than this share


class Judged(NamedTuple):
    """A row beside the results of its cases."""

    row: Row
    results: tuple[Result, ...]

    @property
    def chip(self) -> str:
        """Return the chip's short name."""
        return self.row.cells["chip"].split()[0].split(".")[0]

    @property
    def extra(self) -> tuple[int, int]:
        """Return the bytes to and from HBM beyond those that the kernel asks for: the chip's, and nkitools'."""
        return self.row.extra_bytes, int(self.results[0].bytes or 0) - int(self.row.cells["floor_bytes"])

    @property
    def times(self) -> tuple[float, float]:
        """Return microseconds: the chip's, and nkitools'."""
        return float(self.row.cells.get("p50_us") or self.row.cells["us"]), sum(float(r.us) for r in self.results)


class Figure(NamedTuple):
    """A line of the table: what was compared, on which chip, in how many rows, and the agreement."""

    kind: str  # verdicts, bytes, bits or time
    what: str
    chip: str
    count: str
    agreement: str


def judged_rows(rows: Iterable[Row], results: Mapping[str, Result]) -> list[Judged]:
    """Return the rows whose cases all have results."""
    return [Judged(row, tuple(results[key] for key in row.keys)) for row in rows if all(k in results for k in row.keys)]


def figures(judged: list[Judged]) -> list[Figure]:
    """Return all figures; none of what has no row."""
    parts = {
        part: [each for each in judged if each.row.part == part] for part in ("verdict", "blocked", "time", "sums")
    }
    return [
        *_verdicts(parts["verdict"]),
        *_settings(parts["blocked"]),
        *_bytes(_ran(parts["blocked"])),
        *_sums(parts["sums"]),
        *_laws(),
        *_times(_ran(parts["blocked"]), parts["time"]),
    ]


def family_of(judged: Judged) -> str:
    """Return the family of a row of times on trn2; '' for others. A matmul whose loads were removed did not spill."""
    row = judged.row
    if row.part == "blocked" and row.cells["verdict"] == "correct":
        return "matmul, modern, spilled" if row.extra_bytes > 0 else "matmul, modern, no spill"
    known = {"mlp": "MLP, legacy", "attention": "attention, legacy", "tiled": "tiled matmul, legacy"}
    return known.get(row.family.split()[0], "") if row.part == "time" else ""


def by_family(judged: Iterable[Judged]) -> dict[str, list[Judged]]:
    """Return the rows of each family that were timed."""
    found: dict[str, list[Judged]] = {}
    for each in judged:
        if family := family_of(each):
            found.setdefault(family, []).append(each)
    return found


def quantiles(ratios: Sequence[float]) -> tuple[float, float, float]:
    """Return the tenth, the median and the ninetieth percentile."""
    tenth, *_, ninetieth = statistics_quantiles(ratios, n=10)
    return tenth, median(ratios), ninetieth


def _laws() -> list[Figure]:
    found = met()
    text = f"the law is within a tenth or the spread in {sum(each.is_met for each in found)} of {len(found)}"
    return [Figure("laws", "medians of 20 or more instructions in profiles", "trn2", f"{len(found)} rows", text)]


def _ran(blocked: list[Judged]) -> list[Judged]:
    return [each for each in blocked if each.row.cells["verdict"] == "correct"]


def _verdicts(judged: list[Judged]) -> list[Figure]:
    found = []
    for chip, device in sorted({(each.chip, _on_device(each)) for each in judged}):
        for verdict in ("correct", "refused"):
            mine = [e for e in judged if (e.chip, _on_device(e), e.row.cells["verdict"]) == (chip, device, verdict)]
            if mine:
                kernels = len({each.row.cells["case"] for each in mine})
                did = "took" if verdict == "correct" else verdict
                what = "ran on the device" if device else f"AWS's compiler {did}"
                found.append(
                    Figure(
                        "verdicts",
                        f"small kernels that {what}",
                        chip,
                        f"{len(mine)} rows, {kernels} kernels",
                        _same(mine),
                    )
                )
    return found


def _on_device(judged: Judged) -> bool:
    return judged.row.cells["how"].startswith("device")


def _same(judged: list[Judged]) -> str:
    others = [each.results[0].errors or "accepted" for each in judged if not _agrees(each)]
    rest = f" (others: {', '.join(sorted(set(others)))})" if others else ""
    return f"same verdict in {len(judged) - len(others)} of {len(judged)}{rest}"


def _agrees(judged: Judged) -> bool:
    return judged.results[0].verdict == judged.row.cells["verdict"]


def _settings(blocked: list[Judged]) -> list[Figure]:
    found = []
    for verdict, what in (("correct", "ran and were right"), ("refused", "the compiler refused")):
        mine = [each for each in blocked if each.row.cells["verdict"] == verdict]
        if mine:
            text = f"settings of a blocked matmul that {what}"
            found.append(Figure("verdicts", text, mine[0].chip, f"{len(mine)} rows", _same(mine)))
    return found


def _bytes(ran: list[Judged]) -> list[Figure]:
    exact, spilled = [e for e in ran if e.extra[0] == 0], [e for e in ran if e.extra[0] > 0]
    fewer = [each for each in ran if each.extra[0] < 0]
    found = []
    if exact:
        equal = sum(each.extra[1] == 0 for each in exact)
        what = "bytes to and from HBM where nothing spilled"
        found.append(Figure("bytes", what, exact[0].chip, f"{len(exact)} rows", f"equal in {equal} of {len(exact)}"))
    if spilled:
        others = [*exact, *fewer]
        seen, wrongly = (sum("NK202" in each.results[0].rules for each in some) for some in (spilled, others))
        text = f"foreseen (NK202) in {seen} of {len(spilled)}, and in {wrongly} of {len(others)} that did not spill"
        found.append(
            Figure("bytes", "settings of a blocked matmul that spilled", spilled[0].chip, f"{len(spilled)} rows", text)
        )
        errors = [abs(mine / chip - 1) for chip, mine in (each.extra for each in spilled)]
        text = f"median error {median(errors):.0%}"
        found.append(Figure("bytes", "bytes that spilling added", spilled[0].chip, f"{len(spilled)} rows", text))
    if fewer:
        ratio = median(int(each.row.cells["bytes"]) / int(each.results[0].bytes) for each in fewer)
        what = "bytes where the compiler removed loads"
        found.append(Figure("bytes", what, fewer[0].chip, f"{len(fewer)} rows", f"chip to nkitools {ratio:.2f}"))
    return found


def _sums(judged: list[Judged]) -> list[Figure]:
    found = []
    for width in sorted({each.row.family for each in judged}, reverse=True):
        mine = [each for each in judged if each.row.family == width]
        places: dict[tuple[str, ...], int] = {}
        equal = {"chip": 0, "fast": 0}
        for each in mine:
            at = places.setdefault(each.row.keys, 0)
            places[each.row.keys] += 1
            for order, result in zip(equal, each.results, strict=True):
                equal[order] += result.bits.split()[at] == each.row.cells["device_hex"]
        what = f"bits of float32 sums of {width}"
        text = f'equal in {equal["chip"]} of {len(mine)} with sum_order="chip" (in {equal["fast"]} without)'
        found.append(Figure("bits", what, mine[0].chip, f"{len(mine)} rows", text))
    return found


def _times(ran: list[Judged], timed: list[Judged]) -> list[Figure]:
    groups: dict[tuple[str, str], list[Judged]] = {}
    for each in ran:
        extra = each.extra[0]
        how = "spilled" if extra > 0 else "loads removed" if extra else "no spill"
        groups.setdefault((f"blocked matmul, {how} (modern, float32)", each.chip), []).append(each)
    for each in timed:
        cells = each.row.cells
        label = f"{_FAMILIES.get(each.row.family, each.row.family)} ({cells['dialect']}, {cells['dtype']})"
        groups.setdefault((label, each.chip), []).append(each)
    return [time_of(label, chip, each) for (label, chip), each in groups.items()]


def time_of(label: str, chip: str, judged: list[Judged]) -> Figure:
    """Return how far estimates are off, and how many pairs of one problem stand in the measured order."""
    known = [each for each in judged if all(result.us for result in each.results)]
    ratios = [mine / theirs for theirs, mine in (each.times for each in known)]
    errors = sorted(abs(ratio - 1) for ratio in ratios)
    text = f"model to chip {median(ratios):.2f}, error median {median(errors):.0%}, 90% below {_at(errors, 0.9):.0%}"
    return Figure("time", label, chip, f"{len(known)} rows", text + _order(known))


def _at(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _order(judged: list[Judged]) -> str:
    """Return the order within problems: pairs that are far apart, pairs that are near, ranks, the price of the pick.

    Ranks and picks are of problems with four settings or more whose slowest is at least a tenth above the best.
    """
    problems: dict[str, list[tuple[float, float]]] = {}
    for each in judged:
        problems.setdefault(problem_of(each), []).append(each.times)
    pairs = [pair for times in problems.values() for pair in combinations(times, 2)]
    text = ""
    for name, least, most in (("order", FAR, float("inf")), ("of nearer ones", FAR / 2, FAR)):
        apart = [pair for pair in pairs if least < abs(pair[0][0] - pair[1][0]) / min(pair[0][0], pair[1][0]) <= most]
        if apart:
            right = sum((one[0] - other[0]) * (one[1] - other[1]) > 0 for one, other in apart)
            text += f", {name} {right} of {len(apart)}"
    spread = [each for each in problems.values() if len(each) > 3 and max(each)[0] >= (1 + FAR) * min(each)[0]]
    if spread:
        ranks = median(rank_correlation(*zip(*each, strict=True)) for each in spread)
        picks = [min(each, key=lambda times: times[1])[0] / min(each)[0] - 1 for each in spread]
        text += f", rank correlation {ranks:.2f}, pick costs {median(picks):.1%} (at most {max(picks):.0%})"
    return text


def problem_of(judged: Judged) -> str:
    """Return what the settings of one kernel have in common."""
    cells = judged.row.cells
    return cells["shapes"] if judged.row.family == "tiled matmul" else judged.row.family


def rank_correlation(chip: Sequence[float], model: Sequence[float]) -> float:
    """Return Spearman's correlation of two lists; 0 where all of one are equal."""
    ranks = [
        [sum(x < each for x in values) + sum(x == each for x in values) / 2 for each in values]
        for values in (chip, model)
    ]
    return correlation(*ranks) if all(len(set(each)) > 1 for each in ranks) else 0.0
