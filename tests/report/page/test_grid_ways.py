"""The way back from an element of a Pallas kernel, through vector memory and copies, to the arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nkitools.report.page.page_data import Gathering
from tests.report.page.browser import Reader
from tests.report.page.test_truth import written

pytest.importorskip("jax")

from tests.report.page.test_worlds import LEFT, RIGHT, checked, copied, multiplied

pytestmark = pytest.mark.frameworks

_WAY = """
    const { Slice, run } = window.nkitools, [output] = run.outputs, [, across] = output.shape;
    const mask = new Uint8Array(output.shape[0] * across);
    mask[arguments[0] * across + arguments[1]] = 1;
    const slice = new Slice();
    slice.askAtEnd(output, mask);
    slice.reach(Infinity);
    const named = ({ storage, kind }) => `${run.inputs.find((each) => each.storage === storage)?.name} ${kind}`;
    const elements = ({ starts }) => [...starts].map((byte) => byte / 4).sort((a, b) => a - b);
    return { steps: slice.steps.map(({ position }) => run.plans[run.instructions.plan[position]][0]),
      leaves: Object.fromEntries([...slice.leaves.values()].map((each) => [named(each), elements(each)])) };
"""


def way(reader: Reader, row: int, column: int) -> Any:
    return reader.driver.execute_script(_WAY, row, column)


def test_an_element_that_was_copied_comes_from_one_element(reader: Reader, tmp_path: Path) -> None:
    """Two copies, from HBM to scratch memory and back, and no other element of the argument."""
    run = checked(copied, LEFT[:, :128])
    reader.open(written(run, tmp_path, LEFT[:, :128]))
    for row, column in ((1, 5), (9, 77)):
        found = way(reader, row, column)
        assert found["steps"] == ["DMA", "DMA"]
        assert found["leaves"] == {"x_hbm -1": [128 * row + column]}


def test_a_product_rests_on_the_blocks_that_were_read(reader: Reader, tmp_path: Path) -> None:
    """What the kernel read at each point, and no block of another row of the grid; the keys walk the way."""
    run, expected = checked(multiplied, LEFT, RIGHT), LEFT @ RIGHT
    expected[11, 3] += 1
    reader.open(written(run, tmp_path, expected))
    found = way(reader, 11, 3)
    assert found["steps"][0] == "block out"
    assert found["steps"].count("write") == 4  # the output, the sums of both points, and their zeros
    rows = np.arange(LEFT.size).reshape(LEFT.shape)[8:].reshape(-1)
    assert found["leaves"] == {"x_ref -1": rows.tolist(), "y_ref -1": list(range(RIGHT.size))}
    reader.click(".card.error .go", "Show the first wrong tile")
    assert "out_ref[8:16, 0:128]" in reader.text(".inspector h2")
    reader.press("w")
    steps = reader.texts("#pane .row")
    assert "HBM out_ref[8:16, 0:128] · [0, 0] ← VMEM out_ref[0:8, 0:128] · [0, 0]" in steps[0]
    assert "program_id(0)=1, program_id(1)=1" in steps[0]
    assert "is not known" in reader.text("#pane .tools")
    reader.press("ARROW_DOWN", "ARROW_DOWN")
    assert "VMEM sums[0:8, 0:128]" in reader.texts("#pane .row[aria-selected=true]")[0]
    assert "sums" in reader.text(".inspector h2")


def test_only_values_that_the_kernel_left_are_followed() -> None:
    """An output that JAX made from the kernel's has no place in it."""
    for function, has_place in ((multiplied, True), (lambda x, y: multiplied(x, y) + 1, False)):
        run = checked(function, LEFT, RIGHT)
        assert ("layout" in Gathering(run, None).tables["outputs"][0]) is has_place
