"""Why mutants survive: those that are no mistake, and those that the checks do not see, each with its reason."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.mutants.cases import CASES
from benchmarks.mutants.runner import Result
from nkitools.edits.candidates import Candidate

FILE = Path(__file__).with_name("survivors.toml")
_FIELDS = ("operator", "kernel", "function", "line", "change")


@dataclass(frozen=True)
class Explanation:
    """Why some mutants survive. What is None is any: without a line it speaks of a kind of mistake.

    ``equivalent``: they do the same as the right kernel. A kind of mistake is only taken to be so where the results are
    the right kernel's bit by bit; the mutants of a named line may also differ within the tolerance.
    """

    equivalent: bool
    reason: str
    operator: str
    kernel: str | None
    function: str | None
    line: str | None
    change: str | None

    def fits(self, mutant: Candidate) -> bool:
        """Whether it speaks of a mutant."""
        return (
            self.operator == mutant.kind
            and self.kernel in (None, mutant.kernel)
            and self.function in (None, mutant.function)
            and self.line in (None, mutant.code)
            and self.change in (None, mutant.change)
        )

    def explains(self, result: Result) -> bool:
        """Whether it says why a mutant survived."""
        return self.fits(result.mutant) and (self.line is not None or result.identical)

    def name(self) -> str:
        """What it speaks of."""
        said = {each: getattr(self, each) for each in _FIELDS}
        return ", ".join(f"{each} {value!r}" for each, value in said.items() if value is not None)


def explanations(file: Path = FILE) -> list[Explanation]:
    """All of the file, the equivalent ones first; ValueError for an entry that is not of the form."""
    tables = tomllib.loads(file.read_text(encoding="utf-8"))
    found = []
    for kind in ("equivalent", "unseen"):
        for entry in tables.pop(kind, []):
            unknown = set(entry) - {*_FIELDS, "reason"}
            if unknown or not {"operator", "reason"} <= set(entry):
                raise ValueError(
                    f"{file.name}: an entry has operator, reason, perhaps kernel, function, line, change: {entry}"
                )
            fields = {each: entry.get(each) for each in _FIELDS}
            found.append(Explanation(kind == "equivalent", entry["reason"], **fields))
    if tables:
        raise ValueError(f"{file.name}: there are [[equivalent]] and [[unseen]] entries, not {sorted(tables)}")
    return found


@dataclass(frozen=True)
class Judgement:
    """The survivors sorted, and the entries of the file that are no longer true."""

    equivalent: list[tuple[Result, Explanation]]
    unseen: list[tuple[Result, Explanation]]
    unexplained: list[Result]
    stale: list[str]


def judge(results: Sequence[Result], known: Sequence[Explanation]) -> Judgement:
    """Each survivor gets the first explanation that fits it.

    Stale is an entry that fits no mutant that was tried though its kernel and its operator were, one that explains
    none of those that survived, and one of a line of which a mutant was killed though it is said to be equivalent.
    """
    judgement = Judgement([], [], [], [])
    used: set[Explanation] = set()
    for result in results:
        if result.verdict.killed:
            continue
        explanation = next((each for each in known if each.explains(result)), None)
        if explanation is None:
            judgement.unexplained.append(result)
            continue
        used.add(explanation)
        sort = judgement.equivalent if explanation.equivalent else judgement.unseen
        sort.append((result, explanation))
    kernels: set[str | None] = {result.mutant.kernel for result in results}
    if kernels >= set(CASES):
        kernels.add(None)  # what is said of any kernel is judged where all of them were tried
    operators = {result.mutant.kind for result in results}
    for each in known:
        if each.operator in operators and each.kernel in kernels and each not in used:
            judgement.stale.append(f"explains no survivor: {each.name()}")
        of_line = [result for result in results if each.line is not None and each.fits(result.mutant)]
        if any(result.verdict.killed for result in of_line):
            judgement.stale.append(f"speaks of a mutant that is noticed: {each.name()}")
    return judgement
