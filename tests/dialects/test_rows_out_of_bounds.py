"""Rows that an index names out of bounds, in a run that collects its findings: whatever instruction they are given."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import neuronxcc.nki.language as old_nl
import numpy as np
import pytest

from nkitools.dialects.legacy.tiles.tensor import Tensor
from nkitools.dialects.modern import language as nl
from tests.dialects.test_listed_errors import CHIPS, FUNCTIONS, Make
from tests.dialects.wrong_calls import is_legacy, legacy, like, written
from tests.nki_versions import SINCE_0_7

pytestmark = SINCE_0_7


def one_row_outside(tensor: Any) -> Any:
    """The rows of a like tensor in HBM by an index, of which one is out of bounds."""
    if isinstance(tensor, list):
        return [one_row_outside(each) for each in tensor]
    make, language = (legacy, old_nl) if is_legacy(tensor) else (written, nl)
    index = make((tensor.shape[0], 1), language.int32, value=0)
    array = (index.base if is_legacy(tensor) else index).storage.array
    array[:, 0] = np.arange(tensor.shape[0]) % 2
    array[tensor.shape[0] // 2] = 99999
    table = like(tensor, buffer=language.hbm)
    if is_legacy(tensor):
        return table[index, old_nl.arange(tensor.shape[1])[None, :]]
    return table.vector_select(0, index)


def is_table(value: Any) -> bool:
    """Return True if such rows can stand for a value: a tensor of two dimensions, or a list of such."""
    if isinstance(value, list):
        return bool(value) and all(is_table(each) for each in value)
    return isinstance(value, (nl.NkiTensor, Tensor)) and value.ndim == 2


READ_NOTHING = ("zeros_like", "empty_like", "expand_dims")
CASES = [each for each in FUNCTIONS if each.values[1] not in READ_NOTHING]


@pytest.mark.parametrize(("home", "name", "make", "simulate"), CASES)
def test_no_exception_but_findings(home: Any, name: str, make: Make, simulate: Callable[..., Any]) -> None:
    """In one or two operands: those of a matmul have other rows than its result."""
    right: dict[str, Any] = {}
    simulate(lambda: right.update(make()), chip=CHIPS.get(name, "trn2"))
    roles = [role for role, value in right.items() if is_table(value)]
    for changed in [*combinations(roles, 1), *combinations(roles, 2)]:

        def kernel(changed: tuple[str, ...] = changed) -> None:
            arguments = make()
            getattr(home, name)(**arguments | {role: one_row_outside(arguments[role]) for role in changed})

        run = simulate(kernel, chip=CHIPS.get(name, "trn2"), rules="report")
        assert run is None or run.findings
