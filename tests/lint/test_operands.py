"""NK201, NK609: what the arguments of a call are, and in which memory they lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint.linted import LEGACY, marked, of_body

TILES = """
sbuf = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf)
psum = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
"""
CASES = {
    "arguments in another order": "nisa.activation(sbuf, sbuf, nl.exp)  # NK609 1",
    "an operator that is a text": "nisa.tensor_tensor(sbuf, sbuf, sbuf, op='add')  # NK609 1",
    "an operator that is a number": "nisa.tensor_scalar(sbuf, sbuf, op0=2.0, operand0=sbuf)  # NK609 1",
    "an operator for data": "nisa.tensor_reduce(sbuf, nl.add, nl.maximum, axis=1)  # NK609 1",
    "a number for data": "nisa.activation(sbuf, nl.exp, 1.0)  # NK609 1",
    "no second operator": "nisa.tensor_scalar(sbuf, sbuf, op0=nl.add, operand0=1.0, op1=None)",
    "a number for an operand": "nisa.tensor_scalar(sbuf, sbuf, op0=nl.add, operand0=1.0)",
    "a number for a register": "r = nisa.register_alloc(1)\nnisa.register_move(r, 2)",
    "what is not known": "nisa.activation(sbuf, op=x, data=sbuf)",
    "a product in SBUF": "nisa.nc_matmul(dst=sbuf, stationary=sbuf, moving=sbuf)  # NK201 1",
    "an operand in PSUM": "nisa.nc_matmul(dst=psum, stationary=sbuf, moving=psum)  # NK201 1",
    "a DMA from PSUM": "nisa.dma_copy(dst=sbuf, src=psum)  # NK201 1",
    "a store from PSUM": "nl.store(x, psum)  # NK201 1",
    "a store of a product": "nl.store(x, nl.matmul(sbuf, sbuf))  # NK201 1",
    "as it should be": "nisa.nc_matmul(psum, sbuf, sbuf)\nnisa.tensor_copy(sbuf, psum)\nnl.store(x, sbuf)",
    "a softmax along the partitions": "y = nl.softmax(sbuf, axis=0)  # NK112 5",
    "a softmax along the free dimension": "y = nl.softmax(sbuf, axis=1)",
    "an element that is compared with a number": "if sbuf[0, 0] == 0:  # NK602 4\n    pass",
    "a tensor that is compared with None": "if sbuf == None:\n    pass",
    "elements that are assigned a number": "sbuf[:, 0:4] = 0.0  # NK607 1",
    "elements that are assigned": "sbuf[:, 0:4] = sbuf[:, 4:8]  # NK621 1",
}


@pytest.mark.parametrize("body", CASES.values(), ids=CASES)
def test_operands_of_the_modern_dialect(tmp_path: Path, body: str) -> None:
    """What is marked is found, and nothing else."""
    marked(tmp_path, TILES + body)


def test_operands_of_the_legacy_dialect(tmp_path: Path) -> None:
    """Its instructions return their results; a store takes a product, and elements are assigned."""
    marked(tmp_path, "tile = nl.load(x)\ny = nisa.activation(tile, nl.exp)  # NK609 5", LEGACY)
    marked(tmp_path, "tile = nl.load(x)\ntile[0:4] = 0.0\nnl.store(x, nl.matmul(tile, tile))  # NK406 1", LEGACY)


def test_the_call_form_is_the_remedy(tmp_path: Path) -> None:
    """Who has swapped two arguments sees their order."""
    (found,) = of_body(tmp_path, TILES + "nisa.activation(sbuf, sbuf, nl.exp)")
    assert found.message == "nisa.activation: argument `op` must be an operator such as nl.add, it is a tensor"
    assert found.remedy.startswith("The call form is nisa.activation(dst, op, data,")
