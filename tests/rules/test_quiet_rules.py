"""The rules that follow from dataflow keep silent about right kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import Context
from typing import Any

import numpy as np
import pytest

import nkitools
from kernels.gallery import LEGACY, NKI, Example
from nkitools.rules.catalogue import RULES
from tests import cases
from tests.repair.mistakes import right_kernels
from tests.repair.mistakes.references import CASES

OF_DATAFLOW = {"NK208", "NK504", "NK510", "NK511", "NK512", "NK513", "NK514"}
FEW = 55  # good examples of other rules that are run without --soak


def run_of(example: Example) -> Any:
    """The run of an example kernel."""
    chip = "trn2" if "trn2" in example.chips else example.chips[0]
    given = example.arguments(np.random.default_rng(3))
    ranks = {"ranks": example.ranks} if example.ranks else {}
    return nkitools.simulate(example.kernel, *given, chip=chip, rules="report", **ranks, **example.keywords)


def run_of_planted(name: str) -> Any:
    """The run of a kernel that mistakes are planted in, without one."""
    return nkitools.simulate(getattr(right_kernels, name), *CASES[name].inputs(), rules="report")


def findings_of_right_kernels(play_example: Callable[..., Any]) -> Iterator[tuple[str, list[Any]]]:
    """Each right kernel's name and what was said of it: example kernels, those of bisect's tests, good examples."""
    for example in (*NKI, *LEGACY):
        yield example.name, Context().run(run_of, example).findings
    for name in CASES:
        yield name, Context().run(run_of_planted, name).findings
    good = [
        (rule, example.good)
        for rule in RULES.values()
        if rule.id.startswith("NK") and rule.id not in OF_DATAFLOW and not rule.lint_only and not rule.estimate_only
        for example in rule.examples
    ]
    for rule, source in good if cases.FULL else good[:FEW]:
        yield rule.id, play_example(source, rules="report", version=rule.nki_version).findings


@pytest.mark.soak
def test_right_kernels_are_left_alone(play_example: Callable[..., Any]) -> None:
    """Of at least 100 right kernels none has more than a hint of these rules, and at most 3 have one.

    Measured: none of 197.
    """
    every = list(findings_of_right_kernels(play_example))
    spoken = [(name, each.rule, each.severity) for name, said in every for each in said if each.rule in OF_DATAFLOW]
    assert len(every) >= 100
    assert [each for each in spoken if each[2] != "hint"] == []
    assert len({name for name, _, _ in spoken}) <= 3, spoken
