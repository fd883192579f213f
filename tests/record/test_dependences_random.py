"""The dependences of random programs, compared with what each element tells."""

from __future__ import annotations

from collections import Counter
from typing import Any

import neuronxcc.nki as legacy
import pytest

import nkitools
from nkitools.record.dependences import CompressedRows
from tests.cases import cases
from tests.nki_versions import SINCE_0_7
from tests.record.random_legacy import LegacyProgram
from tests.record.random_modern import ModernProgram
from tests.record.random_programs import Expected
from tests.record.random_several import CoresProgram, RanksProgram

pytestmark = SINCE_0_7


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


# What came with NKI 0.7: the kinds that the random programs draw of it, and the instruction that each one issues.
NEW_KINDS = {
    "tiles_in": "dma_copy",
    "tiles_out": "dma_copy",
    "between_tiles": "tensor_copy",
    "blocks": "dma_copy",
    "tiles_of_a_block": "dma_copy",
    "rows_with_steps": "dma_copy",
    "tiles_in_psum": "tensor_copy",
    "load_scalar": "scalar_load",
    "load_long_scalar": "scalar_load",
    "store_scalar": "scalar_store",
    "at_computed": "tensor_copy",
    "rows_by_offset": "dma_copy",
    "columns_by_offset": "tensor_copy",
    "bounded_loop": "tensor_copy",
    "fused": "scalar_tensor_tensor",
    "activated": "activation",
    "activated_twice": "activate2",
    "reduced_partitions": "tensor_partition_reduce",
    "greatest": "max8",
    "greatest_of_cores": "topk",
}


def test_every_kind_occurs() -> None:
    """Grids, scalars and changed instructions are drawn as all others are, and issued under their names."""
    programs = [ModernProgram(seed) for seed in range(100)]
    drawn = Counter(each.kind for program in programs for each in program.program if each.kind)
    assert drawn.keys() >= NEW_KINDS.keys()
    assert set(drawn) == {kind.__name__ for kind in programs[0]._kinds()}
    assert min(drawn.values()) >= 15
    seen = set()
    for program in programs[:25]:
        run = nkitools.simulate(program.kernel, *program.arguments(), chip=program.chip, rules="off")
        seen |= {(each.kind, record.name) for each, record in zip(program.program, run.instructions, strict=True)}
    assert seen >= set(NEW_KINDS.items())


def test_what_two_cores_and_ranks_do_occurs() -> None:
    """Cores exchange tiles and reduce them, ranks meet in whole collectives and in halves of some."""
    issued = Counter[str]()
    for seed in range(12):
        cores, ranks = CoresProgram(seed), RanksProgram(seed)
        runs = nkitools.simulate(cores.kernel, *cores.arguments(), chip=cores.chip, grid=2, rules="off")
        talks = nkitools.simulate(ranks.kernel, *ranks.arguments(), chip=ranks.chip, ranks=2, rules="off")
        issued.update(each.name for run in (runs, talks) for each in run.instructions)
    variable = [name + half for name in ("all_to_all_v", "all_gather_v") for half in ("", "_prepare", "_trigger")]
    for name in ("sendrecv", "sendrecv_compute", *variable, "all_gather", "all_reduce", "collective_permute"):
        assert issued[name] >= 4, name
