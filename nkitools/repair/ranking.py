"""The order in which edits are tried: by the lines that may be wrong, and by the form of the error."""

from __future__ import annotations

import ast
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.edits.names import Names
from nkitools.precision.runs import arrays_in
from nkitools.processes import TimedOut, output_of
from nkitools.repair.case import Arguments
from nkitools.repair.trials import Part, Trial

_KINDS = {
    "other-axis": 0.0, "exchange-nested": 0.0, "other-number": 0.5, "other-sign": 0.5, "part-of-expression": 0.5,
    "other-dtype": 0.5, "shift-back": 1.0, "exchange-arguments": 0.5, "swap-operands": 0.5, "swap-stationary": 0.5,
    "other-flag": 0.5, "other-operand": 0.5, "other-index": 1.0, "other-name": 1.5, "no-statement": 1.0,
    "move-statement": 1.0, "exchange-statements": 2.0, "one-more-factor": 2.0, "other-instruction": 2.0,
    "one-more-instruction": 4.0,
    "one-more-keyword": 2.0, "ignore-condition": 1.0, "forget-accumulate": 0.5, "wrong-accumulate": 0.5,
    "solved-number": 0.0, "other-brackets": 0.5, "out-of-brackets": 0.5, "other-quotient": 1.0, "other-turn": 0.5,
    "other-end": 0.5, "other-bound": 2.5, "swap-names": 1.0, "other-counter": 1.0, "one-step-less": 0.5,
    "no-method": 1.0, "first-value": 0.5, "one-more-operand": 2.5, "clear-before": 1.0, "other-transposition": 0.5,
    "place-of-block": 0.5, "other-constant": 0.5, "other-condition": 1.0, "other-value": 4.0,
    "change-engine": 9.0, "change-buffer": 9.0, "alias-buffers": 9.0, "forget-return": 9.0, "wrong-range": 6.0,
    "drop-barrier": 6.0, "drop-memset": 4.0, "drop-copy": 4.0, "keyword-of-another": 1.0, "one-more-condition": 1.0,
    "one-more-bound": 1.5, "one-more-program": 1.0,
}  # fmt: skip
_OTHER_KIND = 2.0
_UNREAD = 2.0  # for an edit that adds a name which nothing reads
_PLACES = frozenset({
    "other-index", "shift-back", "shift-slice", "swap-indices", "exchange-arguments", "other-name", "wrong-counter",
    "shorten-loop", "lengthen-loop", "start-late", "other-axis", "other-operand", "swap-targets", "swap-names",
    "other-transposition", "other-counter",
})  # fmt: skip
_NUMBERS = frozenset(
    {
        "solved-number",
        "other-number",
        "other-sign",
        "part-of-expression",
        "one-more-factor",
        "change-constant",
        "other-constant",
        "other-flag",
    }
)
_ANYWHERE = _NUMBERS | {
    "other-operand", "other-name", "exchange-arguments", "other-brackets", "other-quotient", "other-turn",
    "other-counter",
}  # fmt: skip
_PARTIAL = frozenset({
    "other-index", "shift-back", "narrow-slice", "widen-slice", "shorten-loop", "lengthen-loop", "drop-mask",
    "drop-minimum", "floor-division", "change-comparison", "ignore-condition", "other-name", "move-statement",
    "other-quotient", "other-end", "other-bound", "other-turn", "clear-before", "other-counter", "one-more-bound",
    "keyword-of-another", "one-more-condition",
})  # fmt: skip
DTYPES = frozenset({"other-dtype", "change-dtype"})


@dataclass(frozen=True)
class Shape:
    """The form of an error: the kinds of edits that such an error points to, and a sentence."""

    kinds: frozenset[str]
    said: str = ""


def shape_of(got: Sequence[Array], want: Sequence[Array], wrong: Sequence[Array | None]) -> Shape:
    """Return the form of the error of the first output that differs."""
    for one, other, mask in zip(got, want, wrong, strict=False):
        if mask is not None and mask.any():
            return _shape(one, other, mask)
    return Shape(frozenset())


def _shape(one: Array, other: Array, mask: Array) -> Shape:
    try:
        first, second = one.astype(np.float64), other.astype(np.float64)
    except (TypeError, ValueError):
        return Shape(frozenset())
    with np.errstate(all="ignore"):
        if _alike(np.sort(first, axis=None), np.sort(second, axis=None)):
            return Shape(_PLACES, "the right values stand in other places")
        if _alike(np.trunc(second), first) or _alike(np.rint(second), first) or _alike(np.floor(second), first):
            return Shape(DTYPES, "the fractions are lost")
        for value, said in ((first / second, "times"), (first - second, "plus")):
            number = _one_number(value)
            if number is not None:
                return Shape(_NUMBERS, f"each value is what it should be {said} {number:.6g}")
    if mask.mean() < _PART:
        return Shape(_PARTIAL, "")
    return Shape(_ANYWHERE)


def _one_number(values: Array) -> float | None:
    """Return the number that all finite elements are equal to; None if they differ, or are few."""
    finite = values[np.isfinite(values)]
    if finite.size < max(4, values.size // 4):
        return None
    middle = float(np.median(finite))
    return middle if _alike(finite, np.full_like(finite, middle)) else None


def _alike(one: Array, other: Array) -> bool:
    finite = np.abs(other[np.isfinite(other)])
    far = 1e-4 * float(finite.max(initial=0.0))
    return one.shape == other.shape and bool(np.allclose(one, other, rtol=1e-4, atol=far, equal_nan=True))


class Lines:
    """The lines of a kernel's functions, with weights: the lower, the likelier a line is wrong."""

    def __init__(
        self, wrong: Counter[tuple[str, int]], right: Iterable[tuple[str, int]], changed: Mapping[str, set[int]]
    ) -> None:
        self._wrong, self._right, self._changed = wrong, frozenset(right), changed
        self._weights: dict[int, dict[int, float]] = {}

    def weight(self, trial: Trial) -> float:
        """Return the weight of an edit's line: the lower, the likelier the line is wrong."""
        known = self._weights.setdefault(id(trial.part.source), {})
        if not known:
            known.update(self._of(trial.part))
        return known.get(trial.edit.line, 2.0)

    def _of(self, part: Part) -> dict[int, float]:
        own = {line: self._instruction(part.file, line) for line in range(1, len(part.source.lines) + 1)}
        found: dict[int, float] = {}
        for node in ast.walk(part.source.tree):
            if isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef | ast.ClassDef):
                last = node.end_lineno or node.lineno
                weight = min(own[line] for line in range(node.lineno, last + 1))
                if isinstance(node, ast.For | ast.If | ast.While | ast.With):
                    last, weight = node.body[0].lineno - 1, weight + 0.3
                elif weight >= 3.0:
                    weight = 1.5 if isinstance(node, ast.Assign) else weight
                found.update(dict.fromkeys(range(node.lineno, max(last, node.lineno) + 1), weight))
        for line in self._changed.get(part.file, ()):
            found[line] = found.get(line, 2.0) - 3.0
        return found

    def _instruction(self, file: str, line: int) -> float:
        if (file, line) not in self._wrong:
            return 3.0 if self._wrong else 1.5
        return 1.0 if (file, line) in self._right else 0.0


def ranked(trials: Iterable[Trial], lines: Lines, shape: Shape) -> list[Trial]:
    """Return edits in the order in which they are tried, the likeliest first."""
    trials = list(trials)
    of_kind = Counter(each.kind for each in trials)  # the kinds of few edits take little time
    many: Counter[tuple[str, int, int]] = Counter()
    scored: list[tuple[float, int, Trial]] = []
    for trial in trials:
        place = trial.kind, *trial.part.source.bounds(trial.edit)
        score = _KINDS.get(trial.kind, _OTHER_KIND) - 1.5 * (trial.kind in shape.kinds)
        score += lines.weight(trial) + 0.6 * math.log2(1 + many[place]) - _UNREAD * _reads_unread(trial)
        score += _MANY * math.log2(of_kind[trial.kind])
        scored.append((score, len(scored), trial))
        many[place] += 1
    return [trial for _, _, trial in sorted(scored, key=lambda each: each[:2])]


_MANY = 0.15
_PART = 0.8  # of the elements: if more differ, the others are right by chance
_LEAST_SIZE = 8  # of an argument, to explain a number


def unlikely(trial: Trial, given: Arguments, changed: Mapping[str, set[int]]) -> int:
    """Return how unlikely it is that an edit restores what the author meant; of two, the lower one is likelier.

    Likely are edits of lines that have just changed, and edits to a number that a size of the arguments explains:
    ``1 / 32`` becomes ``1 / 64`` and rows have 64 elements. Unlikely are edits of such a number, and additions.
    """
    sizes = {size for _, (_, array) in arrays_in("", given) for size in array.shape if size >= _LEAST_SIZE}
    before, after = (_explained(text, sizes) for text in (trial.part.source.said(trial.edit), trial.edit.text))
    is_addition = trial.kind.startswith("one-more")
    return 1 + (is_addition or before) - after - 2 * (trial.line in changed.get(trial.part.file, ()))


def _explained(text: str, sizes: set[int]) -> bool:
    """Return whether a text is a number that is a size, its square root, or 1 divided by one of these."""
    try:
        number = abs(float(text))
    except ValueError:
        return False
    return any(math.isclose(number, size**power, rel_tol=1e-6) for size in sizes for power in (1, -1, 0.5, -0.5))


_WORD = re.compile(r"[A-Za-z_]\w*")


def _reads_unread(trial: Trial) -> bool:
    """Return whether an edit adds a name that has a value and that nothing reads."""
    source = trial.part.source
    names = Names.at(source, trial.edit.line)
    if names is None or not names.unread:
        return False
    return not names.unread.isdisjoint({*_WORD.findall(trial.edit.text)} - {*_WORD.findall(source.said(trial.edit))})


def changed_lines(files: Iterable[str]) -> dict[str, set[int]]:
    """Return the lines of each file that differ from its repository's HEAD; files without any are left out."""
    found = {}
    for file in set(files):
        command = ["git", "-C", os.path.dirname(file) or ".", "diff", "-U0", "--no-ext-diff", "HEAD", "--", file]
        try:
            done = output_of(command, 2.0)
        except (OSError, TimedOut):
            continue
        lines: set[int] = set()
        for start, count in re.findall(r"^@@ [^+]*\+(\d+)(?:,(\d+))? @@", done.stdout, re.M):
            lines.update(range(int(start), int(start) + int(count or 1)))
        if lines:
            found[file] = lines
    return found
