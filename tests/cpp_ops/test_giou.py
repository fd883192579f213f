"""The GIoU operator: bit-equal to NumPy's float32 in whatever way the boxes fall to the cores, and silent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpp_ops.giou import build, reference
from kernels.nki.giou import giou as giou_kernel
from nkitools.customop import Operator, load
from nkitools.rules.finding import KernelError
from tests.cpp_ops.conftest import boxes_of
from tests.kernels.reference import boxes, giou_reference

CHUNK = 384  # boxes that a core takes at once


@pytest.fixture(scope="session")
def giou() -> Operator:
    return build.library().giou


SIZES = [
    (1, 1),
    (1, 5),
    (7, 1),
    (8, 1),
    (3, 3),
    (1001, 1),
    (1, 4096),
    (7, 1001),
    (1, 8 * CHUNK),
    (1, 8 * CHUNK + 1),
    (2, 8 * CHUNK + 4),
]


@pytest.mark.parametrize(("batch", "count"), SIZES)
def test_every_number_of_boxes_gives_numpys_bits(
    run_kernel: Callable[..., Any], giou: Operator, batch: int, count: int
) -> None:
    """Fewer boxes than cores, boxes left over, full and partial chunks: the same bits, and no finding of any rule."""
    preds, targets = boxes_of(batch, count, 1), boxes_of(batch, count, 2)
    scores = run_kernel(giou, preds, targets, reference=reference.giou)
    assert scores.dtype == np.float32
    assert scores.tobytes() == reference.giou(preds, targets).tobytes()
    assert list(run_kernel.run.findings) == []


def test_the_kernel_agrees_with_the_operator(run_kernel: Callable[..., Any], giou: Operator) -> None:
    """The NKI kernel takes the place of the operator: both score the same boxes, on the target of the test."""
    preds, targets = boxes_of(130, 24, 1), boxes_of(130, 24, 2)
    expected = run_kernel(giou, preds, targets)
    np.testing.assert_allclose(run_kernel(giou_kernel, preds, targets), expected, rtol=0, atol=1e-5)


@given(batch=st.integers(1, 40), count=st.integers(1, 40), seed=st.integers(0, 99))
def test_any_size_is_right(giou: Operator, batch: int, count: int, seed: int) -> None:
    """However many boxes there are, every score is written once, by one core, and is NumPy's."""
    preds, targets = boxes_of(batch, count, seed), boxes_of(batch, count, seed + 1)
    run = giou.run(preds, targets, order=seed)
    assert run.findings == []
    assert run.outputs.tobytes() == reference.giou(preds, targets).tobytes()


def test_the_articles_boxes(run_kernel: Callable[..., Any], giou: Operator) -> None:
    """1024 x 256 boxes: NumPy's bits, and within 1e-5 of the float64 that the other GIoU kernels are compared with."""
    preds, targets = boxes()
    scores = run_kernel(giou, preds, targets)
    assert scores.tobytes() == reference.giou(preds, targets).tobytes()
    assert np.max(np.abs(scores - giou_reference(preds, targets))) <= 1e-5
    assert list(run_kernel.run.findings) == []


def test_known_values(run_kernel: Callable[..., Any], giou: Operator) -> None:
    """Equal boxes give 1, boxes without an area 0, and two unit boxes at the ends of a row of four give -1/2."""
    preds = np.array([[[0, 0, 1, 1], [2, 2, 2, 2], [0, 0, 1, 1]]], np.float32)
    targets = np.array([[[0, 0, 1, 1], [2, 2, 2, 2], [3, 0, 4, 1]]], np.float32)
    np.testing.assert_array_equal(run_kernel(giou, preds, targets), [[1.0, 0.0, -0.5]])


@pytest.mark.parametrize("settings", [{"order": "reverse"}, {"order": 3}, {"threads": True}])
def test_the_order_of_the_cores_does_not_matter(giou: Operator, settings: dict[str, Any]) -> None:
    """Each core writes a part of its own, whenever it runs."""
    preds, targets = boxes_of(3, 1001, 1), boxes_of(3, 1001, 2)
    run = giou.run(preds, targets, **settings)
    assert run.outputs.tobytes() == reference.giou(preds, targets).tobytes()
    assert run.findings == []


def test_the_work_is_shared_evenly_and_fits_in_tcm(giou: Operator) -> None:
    """No core has more than one box more than another, and none more than the pool."""
    run = giou.run(boxes_of(1, 8003, 1), boxes_of(1, 8003, 2))
    written = [core.tcm_bytes_written // 4 for core in run.cores]
    assert written == [1001] * 3 + [1000] * 5
    assert all(core.tcm_peak == 9 * 4 * CHUNK <= 16384 and core.tcm_leaked == 0 for core in run.cores)


def test_what_is_no_pair_of_batches_is_refused(giou: Operator) -> None:
    """The shape function says what is wrong, before a kernel reads what is not there."""
    with pytest.raises(KernelError, match=r"preds and targets must have one shape, \[batch, boxes, 4\]"):
        giou(boxes_of(2, 3, 1), boxes_of(2, 2, 1))
    with pytest.raises(KernelError, match="a box has four coordinates"):
        giou(np.zeros((2, 3, 5), np.float32), np.zeros((2, 3, 5), np.float32))


def test_the_rules_notice_what_is_left_out(giou: Operator, tmp_path: Path) -> None:
    """Without the boxes that are left over the kernel is found out, with their numbers: silence means something."""
    source = Path(build.HERE / "giou.cpp").read_text()
    old = "first + each + (core < rest ? 1 : 0)"
    assert source.count(old) == 1
    (tmp_path / "giou.cpp").write_text(source.replace(old, "first + each"))
    broken = load(**{**build.RECIPE, "compute_srcs": [tmp_path / "giou.cpp"]}).giou
    run = broken.run(boxes_of(1, 10, 1), boxes_of(1, 10, 2))
    assert [finding.rule for finding in run.findings] == ["CO106"]
    assert "output[0, 1], output[0, 3] (2) are never written" in run.findings[0].message
