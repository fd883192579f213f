"""What every NKI version has: random programs give one result, one record and the same findings under each."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.facts import versions
from tests.cases import cases
from tests.record.random_common import CommonProgram


def seen(seed: int, version: str) -> tuple[Any, ...]:
    """Return what is to see of a program's run under a version, apart from its outputs."""
    program = CommonProgram(seed)
    run = nkitools.simulate(program.kernel, *program.arguments(), chip="trn3", rules="report", nki_version=version)
    found = run.dependences
    edges = [(rows.starts.tolist(), rows.sources.tolist()) for rows in (found.flow, found.output, found.anti)]
    return run.outputs, list(run.instructions), edges, run.findings, run.prints


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(cases(600)))
def test_versions_agree(seed: int) -> None:
    """Every bit of the outputs, every field of the record and of the findings, and all dependences."""
    (outputs, *rest), *others = (seen(seed, version) for version in versions.versions_of())
    assert np.isfinite(outputs[0]).any()
    for found, *theirs in others:
        for mine, other in zip(outputs, found, strict=True):
            np.testing.assert_array_equal(mine.view(np.uint32), other.view(np.uint32))
        assert theirs == rest


def test_every_kind_occurs() -> None:
    """A few programs have all of them, and go through all the instructions meant."""
    programs = [CommonProgram(seed) for seed in range(60)]
    drawn = Counter(each.kind for program in programs for each in program.program if each.kind)
    assert set(drawn) == {kind.__name__ for kind in programs[0]._kinds()}
    assert min(drawn.values()) >= 10
