"""The dependences of random programs, compared with what each element tells."""

from __future__ import annotations

from typing import Any

import neuronxcc.nki as legacy
import pytest

import nkitools
from nkitools.record.dependences import CompressedRows
from tests.cases import cases
from tests.record.random_legacy import LegacyProgram
from tests.record.random_modern import ModernProgram
from tests.record.random_programs import Expected
from tests.record.random_several import CoresProgram, RanksProgram


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


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(cases(500)))
def test_legacy(seed: int) -> None:
    """Affine masks and indices on the device in the legacy dialect."""
    program = LegacyProgram(seed)
    run = nkitools.simulate(legacy.jit(program.kernel), *program.arguments(), rules="off")
    names = [each.name for each in run.instructions]
    assert len(names) == len(program.steps)
    compare(run, Expected(program.memory, program.steps), names)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(cases(300)))
def test_two_cores(seed: int) -> None:
    """Cores that share HBM, in the order of the record, and exchange or reduce tiles."""
    program = CoresProgram(seed)
    run = nkitools.simulate(program.kernel, *program.arguments(), chip=program.chip, grid=2, rules="off")
    left = [iter(each.program) for each in program.cores]
    steps = [next(left[each.program[0]]).touched for each in run.instructions]
    assert not any(list(each) for each in left)
    compare(run, Expected(program.memory, steps), [each.name for each in run.instructions])


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(cases(200)))
def test_ranks(seed: int) -> None:
    """Ranks with memories of their own, which meet in collectives."""
    program = RanksProgram(seed)
    run = nkitools.simulate(program.kernel, *program.arguments(), chip=program.chip, ranks=2, rules="off")
    steps = [each.touched for rank in program.ranks for each in rank.program]
    names = [each.name for each in run.instructions]
    assert len(names) == len(steps)
    compare(run, Expected(program.memory, steps), names)
