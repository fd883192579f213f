"""Mistakes that are made in a kernel, one at a time: the share that a verdict's rows catch says how sure they are."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from typing import Any

from nkitools.edits.candidates import Candidate, candidates_of
from nkitools.edits.in_place import in_place
from nkitools.repair.trials import Part, parts_of
from nkitools.sweeps.mutate import USUAL


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
            for each in candidates_of(parts[0].source, USUAL):
                around = [part for part in parts if part.first <= each.line <= part.last]
                if around:
                    found.append((max(around, key=lambda part: part.first), each))
        return found

    def sample(self, count: int, seed: int) -> list[tuple[int, str]]:
        """Return the numbers of some mistakes, each with its line and change."""
        numbers = random.Random(seed).sample(range(len(self._all)), min(count, len(self._all)))
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
