"""The dependences of random programs, compared with what each element tells."""

from __future__ import annotations

from typing import Any

import pytest

import nkitools
from nkitools.record.dependences import CompressedRows
from tests.cases import cases
from tests.record.random_modern import ModernProgram
from tests.record.random_programs import Expected


def sets(rows: CompressedRows) -> list[set[int]]:
    """Return the sources of each instruction, which are sorted and unique."""
    found = [row.tolist() for row in (rows[at] for at in range(len(rows)))]
    assert all(row == sorted(set(row)) for row in found)
    return [set(row) for row in found]


def compare(run: Any, expected: Expected, names: list[str]) -> None:
    """Assert that a run has the dependences that its elements tell, and none besides."""
    found = run.dependences
    for kind in ("flow", "output", "anti"):
        mine, theirs = sets(getattr(found, kind)), getattr(expected, kind)
        wrong = [(at, names[at], mine[at], theirs[at]) for at in range(len(theirs)) if mine[at] != theirs[at]]
        assert len(mine) == len(theirs)
        assert wrong == [], kind


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(cases(1000)))
def test_one_core(seed: int) -> None:
    """Views of every kind on one core of the modern dialect."""
    program = ModernProgram(seed)
    run = nkitools.simulate(program.kernel, *program.arguments(), chip=program.chip, rules="off")
    names = [each.name for each in run.instructions]
    assert len(names) == len(program.steps)
    compare(run, Expected(program.memory, program.steps), names)
