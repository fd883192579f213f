"""Mistakes that are made in a kernel, one at a time: the share that a verdict's rows catch says how sure they are."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from typing import Any

from nkitools.edits.candidates import Candidate, candidates_of
from nkitools.edits.in_place import in_place
from nkitools.edits.kinds import Kind, kind
from nkitools.edits.source import Edit, Source, callee, keyword, last_word, replaced
from nkitools.repair.trials import Part, parts_of
from nkitools.sweeps.mutate import USUAL

_MOST_LIMITS = 4
_BOUNDS = ("minimum", "maximum")
LIMITS: dict[str, Kind] = {}
"""Mistakes that no row catches where no value reaches a limit: a kernel that cuts at 6 is right for smaller values."""


@kind("drop-limit", "a limit that the reference has not", ast.Call, LIMITS)
def drop_limit(source: Source, node: ast.Call) -> Iterator[Edit]:
    """``nl.minimum(x, 6.0)`` becomes ``x``, and ``op1=nl.minimum, operand1=6.0`` is left out."""
    if callee(node) in _BOUNDS and len(node.args) == 2 and isinstance(node.args[1], ast.Constant):
        yield replaced(node, source.says(node.args[0]))
    op = keyword(node, "op1")
    limit = keyword(node, "operand1")
    if op is not None and limit is not None and last_word(op.value) in _BOUNDS:
        kept = [each for each in node.keywords if each not in (op, limit)]
        yield replaced(node, f"{source.says(node.func)}({', '.join(map(source.says, [*node.args, *kept]))})")


class Mutants:
    """The usual mistakes in the functions that a kernel runs."""

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel

    @cached_property
    def _all(self) -> list[tuple[Part, Candidate]]:
        found = []
        by_source: dict[int, list[Part]] = {}
        for part in parts_of(self._kernel):
            by_source.setdefault(id(part.source), []).append(part)
        for parts in by_source.values():
            for each in (*candidates_of(parts[0].source, USUAL), *candidates_of(parts[0].source, table=LIMITS)):
                around = [part for part in parts if part.first <= each.line <= part.last]
                if around:
                    found.append((max(around, key=lambda part: part.first), each))
        return found

    def sample(self, count: int, seed: int) -> list[tuple[int, str]]:
        """Return the numbers of some mistakes, each with its line and change; limits come first."""
        of_limits = [number for number, (_, each) in enumerate(self._all) if each.kind in LIMITS][:_MOST_LIMITS]
        others = [number for number, (_, each) in enumerate(self._all) if each.kind not in LIMITS]
        room = min(max(count - len(of_limits), 0), len(others))
        numbers = of_limits + random.Random(seed).sample(others, room)
        return [(number, _said(self._all[number][1])) for number in numbers]

    def made(self, number: int) -> AbstractContextManager[None]:
        """Make a mistake in the kernel while the block runs; none for a number below 0."""
        return nullcontext() if number < 0 else self._edited(number)

    @contextmanager
    def _edited(self, number: int) -> Iterator[None]:
        part, mutant = self._all[number]
        with in_place(part.function, mutant.text):
            yield


def _said(mutant: Candidate) -> str:
    return f"line {mutant.line}: {mutant.kind}: {mutant.change}"
