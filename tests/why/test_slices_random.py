"""Backward slices of random programs, compared with a model that follows every byte forward."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import neuronxcc.nki as legacy
import numpy as np
import pytest

import nkitools
from nkitools.why.asked_elements import Asked
from nkitools.why.element_slices import way_back
from tests.cases import cases
from tests.record.random_legacy import ROWS as LEGACY_ROWS
from tests.record.random_legacy import LegacyProgram
from tests.record.random_modern import COLUMNS, ROWS, ModernProgram
from tests.record.random_several import CoresProgram, RanksProgram
from tests.why.taint import Taint

CHOSEN = {0: ROWS, 1: COLUMNS}
ELEMENTS = 3  # of each result


def elements_of(back: Any) -> set[Any]:
    """Everything that a way back goes through, in the model's terms."""
    found: set[Any] = set()
    for (number, position), visit in back.visits.items():
        for result, mask in visit.made.items():
            found |= {(number, position, result, element) for element in np.flatnonzero(mask).tolist()}
    for read in back.reads():
        kind, place = back.memories[read.number].memory_of(read.access.storage)
        unit = back.memories[read.number].unit((kind, place))
        memory = place if kind == "storage" else -2 - place
        for writer, units in read.writers.items():
            if writer < 0:
                bytes_ = (units[:, None] * unit + np.arange(unit)).reshape(-1).tolist()
                found |= {(writer, read.number, memory, byte) for byte in bytes_}
    return found


def compare(run: Any, chosen: Mapping[int, tuple[int, ...]], seed: int) -> None:
    """Assert that slices of some elements of each result have what the model has, and nothing besides."""
    model, rng = Taint(run, chosen), np.random.default_rng(seed)
    for number, record in enumerate(run.all_records):
        for access in record.outputs:
            for element in rng.integers(0, access.layout.elements, ELEMENTS).tolist():
                wanted = np.zeros(access.layout.shape, np.bool_)
                wanted.reshape(-1)[element] = True
                found = way_back(run, Asked(number, access, wanted))
                assert (found.reason, found.back.is_exact) == ("", True)
                mine, theirs = elements_of(found.back), model.slice_of(number, access, element)
                assert (sorted(mine - theirs), sorted(theirs - mine)) == ([], [])


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(cases(200)))
def test_one_core(seed: int) -> None:
    """Every kind of view of the modern dialect: gathers, registers, shared bytes, sums in PSUM."""
    program = ModernProgram(seed)
    compare(nkitools.simulate(program.kernel, *program.arguments(), chip=program.chip, rules="off"), CHOSEN, seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(cases(100)))
def test_legacy(seed: int) -> None:
    """Affine masks and indices on the device in the legacy dialect."""
    program = LegacyProgram(seed)
    run = nkitools.simulate(legacy.jit(program.kernel), *program.arguments(), rules="off")
    compare(run, {0: LEGACY_ROWS}, seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(cases(100)))
def test_two_cores(seed: int) -> None:
    """Cores that share HBM, and exchange or reduce tiles."""
    program = CoresProgram(seed)
    run = nkitools.simulate(program.kernel, *program.arguments(), chip=program.chip, grid=2, rules="off")
    compare(run, CHOSEN, seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(cases(100)))
def test_ranks(seed: int) -> None:
    """Ranks with memories of their own, which meet in collectives."""
    program = RanksProgram(seed)
    run = nkitools.simulate(program.kernel, *program.arguments(), chip=program.chip, ranks=2, rules="off")
    compare(run, CHOSEN, seed)
