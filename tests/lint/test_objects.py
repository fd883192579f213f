"""Objects of NKI that are used as something else, operands in HBM, tiles that fit nowhere: found without a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint.linted import marked, of_body

TILES = """
t = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
"""
CASES = {
    "a memory is called": "y = nl.sbuf((4, 4), nl.float32)  # NK609 5",
    "a dtype is called": "y = nl.float32(0.5)  # NK609 5",
    "the sizes are called": "y = nl.tile_size(128)  # NK609 5",
    "the sizes are a number": "for i in range(nl.tile_size):  # NK609 16\n    pass",
    "a size that is not there": "y = nl.tile_size.psum_fmax_bytes  # NK607 5",
    "a size that is there": "y = nl.tile_size.pmax",
    "a count that is a quotient": "for i in range(x.shape[0] / 128):  # NK609 16\n    pass",
    "a count that was one before": "n = x.shape[0] / 128\nfor i in range(n):  # NK609 16\n    pass",
    "a quotient that is rounded": "for i in range(int(x.shape[0] / 128)):\n    pass",
    "a shape in pieces": "y = nl.zeros(128, 64, dtype=nl.float32)  # NK609 5",
    "a cast as NumPy has it": "y = t.astype(nl.bfloat16)  # NK601 5",
    "an attribute that was invented": "y = t.tile  # NK601 5",
    "attributes of a tensor": "y = t.shape, t.dtype, t.reshape((128, 8, 8)), t.buffer",
    "an activation function as an operator": "nisa.tensor_scalar(dst=t, data=t, op0=nl.log, operand0=1.0)  # NK306 1",
    "an operator that is both": "nisa.tensor_scalar(dst=t, data=t, op0=nl.abs, operand0=1.0)",
    "an argument as an operand": "nisa.tensor_scalar(dst=t, data=x, op0=nl.add, operand0=1.0)  # NK201 1",
    "a part of it": "nisa.activation(dst=t, op=nl.exp, data=x[0:128])  # NK201 1",
    "an argument that is bound again": "x = nl.load(x)\nnisa.tensor_scalar(dst=t, data=x, op0=nl.add, operand0=1.0)",
    "a result in HBM": (
        "out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)\n"
        "nisa.tensor_copy(dst=out, src=t)  # NK201 1\nreturn out"
    ),
    "one dimension": "y = nl.ndarray((128,), dtype=nl.float32, buffer=nl.sbuf)  # NK110 5",
    "one dimension in HBM": "y = nl.ndarray((128,), dtype=nl.float32, buffer=nl.shared_hbm)",
    "too wide for SBUF": "y = nl.ndarray((128, 100000), dtype=nl.float32, buffer=nl.sbuf)  # NK202 5",
    "half as wide": "y = nl.ndarray((128, 100000), dtype=nl.bfloat16, buffer=nl.sbuf)",
    "too wide for PSUM": "y = nl.ndarray((128, 8192), dtype=nl.float32, buffer=nl.psum)  # NK203 5",
}


@pytest.mark.parametrize("body", CASES.values(), ids=CASES)
def test_objects_and_tiles(tmp_path: Path, body: str) -> None:
    """What is marked is found, and nothing else."""
    marked(tmp_path, TILES + body)


def test_the_remedies_say_what_to_write(tmp_path: Path) -> None:
    """The call, with what stands in the line."""
    (called,) = of_body(tmp_path, "y = nl.sbuf((4, 4), nl.float32)")
    assert called.remedy == "Write `nl.ndarray((4, 4), dtype=nl.float32, buffer=nl.sbuf)`."
    (ranged, _) = of_body(tmp_path, "with nl.affine_range(2) as i:\n    pass")
    assert (ranged.rule, ranged.remedy) == ("NK609", "Write `for i in nl.affine_range(2):`.")
    (named,) = of_body(tmp_path, TILES + "y = nisa.multiply(t, 0.5)")
    assert named.remedy == (
        "Write `nl.multiply(t, 0.5)`; with a destination "
        "`nisa.tensor_scalar(dst=..., data=t, op0=nl.multiply, operand0=0.5)`."
    )
    (keyword,) = of_body(tmp_path, TILES + "nisa.dma_copy(dst=t, scr=x)")
    assert keyword.remedy.startswith("Write `src=` for `scr=`. The call form is nisa.dma_copy(")
