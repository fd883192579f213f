"""An instruction's documentation: its source, and the rules that it can break."""

from __future__ import annotations

import re
from typing import Any

import pytest

import nkitools.dialects.modern.isa as nisa
from nkitools.rules.catalogue import RULES
from tests.isa import (
    test_activation,
    test_activation_fused,
    test_exponential,
    test_fused,
    test_iota,
    test_move,
    test_nc_matmul_refusals,
    test_nc_transpose,
    test_scan,
    test_statistics,
    test_tensor_reduce,
    test_tensor_scalar,
    test_tensor_tensor,
)

INSTRUCTIONS = {name: each.instruction for name in nisa.__all__ if hasattr(each := getattr(nisa, name), "instruction")}
REFUSED: dict[str, dict[str, Any]] = {
    "activation": test_activation.REFUSED,
    "dma_copy": test_move.DMA_REFUSED,
    "tensor_copy": test_move.COPY_REFUSED,
    "memset": test_move.MEMSET_REFUSED,
    "iota": test_iota.IOTA_REFUSED,
    "nc_matmul": test_nc_matmul_refusals.REFUSED,
    "nc_transpose": test_nc_transpose.REFUSED,
    "tensor_reduce": test_tensor_reduce.REFUSED,
    "tensor_scalar": test_tensor_scalar.REFUSED,
    "tensor_tensor": test_tensor_tensor.REFUSED,
    "scalar_tensor_tensor": test_fused.TWO_STEPS_REFUSED,
    "tensor_scalar_reduce": test_fused.REDUCE_REFUSED,
    "tensor_scalar_cumulative": test_scan.CUMULATIVE_REFUSED,
    "tensor_tensor_scan": test_scan.SCAN_REFUSED,
    "activation_reduce": test_activation_fused.ACTIVATION_REFUSED,
    "activate2": test_activation_fused.ACTIVATE2_REFUSED,
    "exponential": test_exponential.REFUSED,
    "bn_stats": test_statistics.BN_STATS_REFUSED,
    "bn_aggr": test_statistics.BN_AGGR_REFUSED,
    "tensor_partition_reduce": test_statistics.ACROSS_REFUSED,
}


def named_rules(doc: str) -> set[str]:
    """The rules of a docstring's "Errors:", with "NK107 to NK111" spelled out."""
    text = " ".join(doc.split())
    errors = re.search(r"Errors: (.*?)\. Source: ", text)
    assert errors is not None, "a docstring has an `Errors: …. Source: …` part"
    found = set(re.findall(r"NK\d{3}", errors[1]))
    for first, last in re.findall(r"NK(\d{3}) to NK(\d{3})", errors[1]):
        found |= {f"NK{number}" for number in range(int(first), int(last) + 1)}
    return found


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_an_instruction_names_its_rules_and_its_source(name: str) -> None:
    """Rules that exist, and where the facts are from."""
    doc = INSTRUCTIONS[name].__doc__ or ""
    assert named_rules(doc) <= set(RULES)
    assert re.search(rf"Source: nki\.isa\.{name} \(NKI 0\.[67]", " ".join(doc.split()))


@pytest.mark.parametrize("name", REFUSED)
def test_the_rules_that_the_tests_break_are_documented(name: str) -> None:
    """What a test sees refused, the docstring promises."""
    broken = {case[0] for case in REFUSED[name].values()}
    assert broken <= named_rules(INSTRUCTIONS[name].__doc__ or "")


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_an_instruction_describes_itself(name: str) -> None:
    """Its name and call form are those of a function."""
    each = INSTRUCTIONS[name]
    assert each.__name__ == name
    assert f"nisa.{name}(" in repr(each)
