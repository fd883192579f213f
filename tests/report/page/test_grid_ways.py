"""Ways back from elements of Pallas kernels to the arguments, and their events on an axis of estimated time."""

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
    """A way has what the kernel read at each point, and no block of another row of the grid; keys walk it."""
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
    assert "HBM out_ref[8:16, 0:128] · [3, 3] ← VMEM out_ref[0:8, 0:128] · [3, 3]" in steps[0]
    assert "at (1, 1)" in steps[0]
    assert "is not known" in reader.text("#pane .tools")
    reader.press("ARROW_DOWN", "ARROW_DOWN")
    assert "VMEM sums[0:8, 0:128]" in reader.texts("#pane .row[aria-selected=true]")[0]
    assert "sums" in reader.text(".inspector h2")


def test_only_values_that_the_kernel_left_are_followed() -> None:
    """An output that JAX made from the kernel's has no place in it."""
    for function, has_place in ((multiplied, True), (lambda x, y: multiplied(x, y) + 1, False)):
        run = checked(function, LEFT, RIGHT)
        assert ("layout" in Gathering(run, None).tables["outputs"][0]) is has_place


_PLACES = """
    const { gridLanes, traces: [trace] } = window.nkitools, { estimatesOf, lanesOf, placesOf, whyNoTime } = gridLanes;
    const placed = ({ from, to, value }) => [from, to, value ?? -1];
    const [estimate] = estimatesOf(trace), places = placesOf(trace, estimate);
    return { why: estimatesOf(trace).map((each) => whyNoTime(trace, each)), length: places.length,
      lanes: Object.fromEntries(lanesOf(trace, places).map(({ name, slices }) => [name, slices.map(placed)])) };
"""


def estimate(kernel: str, chip: str, steps: int, **about: Any) -> dict[str, Any]:
    """Return the part of an estimate that a page shows, made without a compiler."""
    compute, memory = about.get("compute_us"), about.get("memory_us")
    known = {"units": {}, "profiled_steps": steps, "bound": "compute", "left_out": "", **about}
    latency = None if compute is None else max(compute, memory)
    return {"kernel": kernel, "chip": chip, "steps": steps, "latency_us": latency, **known}


def test_points_and_blocks_stand_in_estimated_time(reader: Reader, tmp_path: Path) -> None:
    """Blocks are loaded while the point before is computed, stored after it; without an estimate the page says so."""
    run = checked(multiplied, LEFT, RIGHT)
    reader.open(written(run, tmp_path))
    reader.press("6")
    assert "estimates=True" in reader.text("#pane")
    # At 10,000 bytes a microsecond the blocks of a point are loaded in 6.96 us; it is computed in 3.
    left, right, out = (4 * size / 1e4 for size in (8 * 128, 128 * 128, 8 * 128))
    moved = round(1e4 * (4 * (left + right) + 2 * out))
    known = estimate("product", "v5e", 4, compute_us=12.0, memory_us=moved / 1e4, hbm_bytes=moved)
    without = estimate("product", "v4", 4, compute_us=None, memory_us=1.0, hbm_bytes=moved, left_out="no profile")
    run.settings["estimates"] = [known, without]
    reader.open(written(run, tmp_path))
    found = reader.driver.execute_script(_PLACES)
    assert found["why"] == ["", "no profile"]
    # Each point waits for its blocks; those of the last one wait for the store of the second, which shares the way.
    load = left + right
    starts = np.array([load, 2 * load, 3 * load, 4 * load + out])
    np.testing.assert_allclose([each[:2] for each in found["lanes"]["points"]], np.stack([starts, starts + 3], axis=1))
    stored = [[3 * load, 3 * load + out], [starts[3] + 3, starts[3] + 3 + out]]
    blocks = [each[:2] for each in found["lanes"]["pipeline"]]
    assert len(blocks) == 10
    np.testing.assert_allclose([blocks[4], blocks[9]], stored)
    assert found["length"] == pytest.approx(stored[1][1])
    reader.press("6")
    assert "in estimated time on v5e" in reader.text("#pane h4 select")
    assert "no estimated time on v4: no profile" in reader.text("#pane")


def test_copies_and_semaphores_stand_in_estimated_time(reader: Reader, tmp_path: Path) -> None:
    """A copy takes from its start to its wait; a semaphore has the bytes of a copy until they are waited for."""
    run = checked(copied, LEFT[:, :128])
    run.settings["estimates"] = [
        estimate("kernel", "v5e", 1, compute_us=1.0, memory_us=2.0, hbm_bytes=2 * 16 * 128 * 4)
    ]
    reader.open(written(run, tmp_path))
    found = reader.driver.execute_script(_PLACES)
    assert found["length"] == pytest.approx(2.0)  # its own copies take longer than what it computes
    ((begin, end, _),) = found["lanes"]["points"]
    assert (begin, end) == (0, pytest.approx(2.0))
    into = found["lanes"]["DMA to room"]
    assert [each[0] for each in into] == pytest.approx([0.0, 0.125])  # the first two of sixteen events
    assert all(each[1] > into[1][0] for each in into)
    semaphores = [slices for name, slices in found["lanes"].items() if name.startswith("semaphore")]
    assert [[value for *_, value in slices] for slices in semaphores] == [[4096, 0, 4096, 0]] * 2
