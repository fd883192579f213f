"""Checks that AWS's 36 codes (nki.errors) are reported: each has a wrong kernel and a right one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import neuronxcc.nki as nki
import numpy as np
import pytest

import nkitools
from nkitools.dialects.legacy.kernels.kernel import Kernel
from nkitools.record.run import Run
from nkitools.rules.catalogue import find_rule
from tests.dialects.legacy.running import random

MARK = "# here"


@dataclass(frozen=True)
class Case:
    """A code, the rule that speaks for it, and the two kernels; ``inputs`` are those of both."""

    code: str
    rule: str
    bad: Callable[..., Any]
    good: Callable[..., Any]
    inputs: tuple[Any, ...] = field(default_factory=lambda: (random(128, 64),))


def marked_line(function: Any) -> int:
    """The line of a function that ends in the mark."""
    lines, first = inspect.getsourcelines(inspect.unwrap(function))
    (number,) = [number for number, line in enumerate(lines) if line.rstrip().endswith(MARK)]
    return first + number


def run(function: Any, inputs: tuple[Any, ...], rules: str = "report") -> Run:
    """A run on copies of the inputs."""
    kernel = function if isinstance(function, Kernel) else nki.jit(function)
    return nkitools.simulate(kernel, *(np.array(each) for each in inputs), rules=rules)


def check(case: Case) -> None:
    """The wrong kernel is reported under both names, at the marked line, and as nothing else; the right one is not."""
    found = find_rule(case.code)
    assert found is not None
    assert found.id == case.rule
    findings = run(case.bad, case.inputs).findings
    told = [each for each in findings if each.rule == case.rule and case.code in each.message]
    assert told, findings
    assert told[0].line == marked_line(case.bad)
    assert told[0].file == inspect.getsourcefile(inspect.unwrap(case.bad))
    assert {each.rule for each in findings if each.severity == "error"} <= {case.rule}
    if found.severity == "error":
        with pytest.raises(Exception) as caught:  # noqa: PT011 - which one it is the finding says
            run(case.bad, case.inputs, "error")
        assert getattr(caught.value, "finding").rule == case.rule  # noqa: B009
    done = run(case.good, case.inputs)
    assert [each.sentence() for each in done.findings if each.severity == "error"] == []
    assert done.outputs is not None


def outside(call: Callable[[], Any]) -> Any:
    """The finding of a call outside of any kernel."""
    with pytest.raises(nkitools.KernelError) as caught:
        call()
    return caught.value.finding
