"""The figures of the yardstick, and how they are shown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from benchmarks.mutants.runner import Result
from benchmarks.mutants.survivors import Judgement

GOAL = 0.95  # of the mutants that are a mistake
WIDTH = 11  # of a column


@dataclass(frozen=True)
class Figures:
    """Counts of mutants. ``mistakes`` are all but the equivalent ones; the others are parts of them.

    ``errors``: a run reports an error, which fails it under the default rules. ``rules``: an error or a warning, in a
    run or in lint. ``lint``: in lint, without running. ``noticed``: by rules or by the comparison, or there is no
    result to compare because the kernel raised or did not end. ``unseen``: by nothing.
    """

    mutants: int
    equivalent: int
    mistakes: int
    lint: int
    errors: int
    rules: int
    noticed: int
    unseen: int

    @property
    def share(self) -> float:
        """Of the mistakes that are noticed."""
        return self.noticed / self.mistakes if self.mistakes else 1.0


def figures(results: Sequence[Result], judgement: Judgement) -> Figures:
    """The counts of some results."""
    same = {id(result) for result, _ in judgement.equivalent}
    mistakes = [result for result in results if id(result) not in same]
    noticed = [result for result in mistakes if result.verdict.killed]
    return Figures(
        mutants=len(results),
        equivalent=len(results) - len(mistakes),
        mistakes=len(mistakes),
        lint=sum(bool(result.verdict.lint) for result in mistakes),
        errors=sum(result.verdict.by_errors for result in mistakes),
        rules=sum(result.verdict.by_rules for result in mistakes),
        noticed=len(noticed),
        unseen=len(mistakes) - len(noticed),
    )


def passes(results: Sequence[Result], judgement: Judgement) -> bool:
    """Whether enough is noticed, and everything else explained by what is still true."""
    return figures(results, judgement).share >= GOAL and not judgement.unexplained and not judgement.stale


def _groups(results: Sequence[Result], judgement: Judgement) -> list[tuple[str, list[tuple[str, Figures]]]]:
    tables = []
    for field in ("kernel", "kind"):
        names = list(dict.fromkeys(getattr(result.mutant, field) for result in results))
        rows = []
        for name in names:
            own = [result for result in results if getattr(result.mutant, field) == name]
            rows.append((name, figures(own, judgement)))
        tables.append((field, rows))
    return tables


def as_text(results: Sequence[Result], judgement: Judgement) -> str:
    """Two tables, and the survivors with their reasons."""
    lines = []
    whole = figures(results, judgement)
    for field, rows in _groups(results, judgement):
        lines += [_row(field, ("mutants", "equivalent", "lint", "errors", "rules", "noticed", "unseen"))]
        for name, row in [*rows, ("all", whole)]:
            shares = [_percent(count, row) for count in (row.lint, row.errors, row.rules, row.noticed)]
            lines.append(_row(name, (row.mutants, row.equivalent, *shares, row.unseen)))
        lines.append("")
    lines += _said_of(results, judgement)
    lines.append(
        f"{whole.mutants} mutants, {whole.equivalent} of them equivalent. Of {whole.mistakes} mistakes "
        f"{_exact(whole.rules, whole)} are told of by rules alone, {_exact(whole.noticed, whole)} by rules, the "
        f"comparison or the lack of a result; {whole.unseen} by nothing."
    )
    return "\n".join(lines)


def _row(name: str, cells: Sequence[object]) -> str:
    return f"{name:<24}" + "".join(f"{cell:>{WIDTH}}" for cell in cells)


def _said_of(results: Sequence[Result], judgement: Judgement) -> list[str]:
    lines = []
    for result, explanation in judgement.unseen:
        lines.append(f"unseen: {_place(result)}: {explanation.reason}")
    lines += [f"UNEXPLAINED: {_place(result)}" for result in judgement.unexplained]
    lines += [f"STALE: {entry}" for entry in judgement.stale]
    for result in results:
        if result.verdict.ours:
            lines.append(f"exception inside nkitools: {_place(result)}: {result.verdict.stopped}")
    return [*lines, ""] if lines else []


def _place(result: Result) -> str:
    mutant = result.mutant
    return f"{mutant.kernel}:{mutant.line} {mutant.kind} `{mutant.change}` in `{mutant.code}`"


def _percent(count: int, row: Figures) -> str:
    return f"{count / row.mistakes:.0%}" if row.mistakes else "-"


def _exact(count: int, row: Figures) -> str:
    return f"{count} ({count / row.mistakes:.1%})" if row.mistakes else "0"


def as_json(results: Sequence[Result], judgement: Judgement) -> str:
    """Everything: the figures, every mutant with its verdict and, of survivors, the reason."""
    reasons = {id(result): ("equivalent", known.reason) for result, known in judgement.equivalent}
    reasons |= {id(result): ("unseen", known.reason) for result, known in judgement.unseen}
    mutants = []
    for result in results:
        fate, reason = reasons.get(id(result), ("noticed" if result.verdict.killed else "unexplained", ""))
        mutant = {**asdict(result.mutant), "new": result.mutant.edit.text, "change": result.mutant.change}
        del mutant["text"], mutant["edit"]
        mutants.append({**mutant, "fate": fate, "reason": reason, **asdict(result.verdict)})
    tables = {field: {name: asdict(row) for name, row in rows} for field, rows in _groups(results, judgement)}
    whole = {"all": asdict(figures(results, judgement)), **tables}
    return json.dumps({"figures": whole, "stale": judgement.stale, "mutants": mutants}, indent=1)
