"""The Pallas GIoU kernel against the float64 reference."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import nkitools.pallas  # noqa: E402  (JAX decides whether this file is collected)
from kernels.pallas import giou as kernel_module  # noqa: E402
from kernels.pallas.giou import giou  # noqa: E402
from tests.kernels.pallas.compiling import assert_compiles, zeros  # noqa: E402
from tests.kernels.reference import boxes, giou_reference  # noqa: E402

TOLERANCE = 1e-5


def worst_error(measured: Any, preds: Any, targets: Any) -> float:
    """The largest distance from the reference; NaN where the kernel gave one."""
    return float(np.max(np.abs(np.asarray(measured, np.float64) - giou_reference(preds, targets))))


def mutant(old: str, new: str) -> ModuleType:
    """The kernel's module with one piece of its source replaced."""
    path = Path(str(kernel_module.__file__))
    source = path.read_text()
    assert source.count(old) == 1, f"the kernel no longer says {old!r} once"
    module = ModuleType("giou_mutant")
    exec(compile(source.replace(old, new), str(path), "exec"), vars(module))
    return module


def test_giou_agrees_with_the_reference(run_kernel: Callable[..., Any]) -> None:
    """On the benchmark's 1024 x 256 boxes every value is within 1e-5 of float64."""
    preds, targets = boxes()
    measured = run_kernel(giou, preds, targets)
    assert isinstance(measured, np.ndarray)
    assert measured.dtype == np.float32
    assert worst_error(measured, preds, targets) <= TOLERANCE


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (8, 128), (130, 129)])
def test_sizes_that_are_no_multiple_of_the_block(run_kernel: Callable[..., Any], shape: tuple[int, int]) -> None:
    """What fills up the last blocks is cut off again, and nothing else is."""
    preds, targets = (array[: shape[0], : shape[1]] for array in boxes())
    measured = run_kernel(giou, preds, targets)
    assert measured.shape == shape
    assert worst_error(measured, preds, targets) <= TOLERANCE


@pytest.mark.parametrize("shape", [(0, 4), (4, 0)])
def test_no_boxes_give_no_values(run_kernel: Callable[..., Any], shape: tuple[int, int]) -> None:
    """An empty batch and a batch without boxes keep their shape."""
    empty = np.zeros((*shape, 4), np.float32)
    assert run_kernel(giou, empty, empty).shape == shape


def test_known_values(run_kernel: Callable[..., Any]) -> None:
    """Equal boxes give 1, boxes without an area 0, and two unit boxes at the ends of a row of four give -1/2."""
    preds = np.array([[[0, 0, 1, 1], [2, 2, 2, 2], [0, 0, 1, 1]]], np.float32)
    targets = np.array([[[0, 0, 1, 1], [2, 2, 2, 2], [3, 0, 4, 1]]], np.float32)
    np.testing.assert_allclose(run_kernel(giou, preds, targets), [[1.0, 0.0, -0.5]], atol=1e-6)


def test_wrong_inputs_are_refused(run_kernel: Callable[..., Any]) -> None:
    """The author's words name the argument, its shape or its dtype."""
    good = np.zeros((2, 3, 4), np.float32)
    with pytest.raises(ValueError, match=r"targets has shape \(2, 3, 5\); boxes come as \[batch, boxes, 4\]"):
        run_kernel(giou, good, np.zeros((2, 3, 5), np.float32))
    with pytest.raises(ValueError, match=r"preds has shape \(2, 3, 4\) and targets \(1, 3, 4\)"):
        run_kernel(giou, good, good[:1])
    with pytest.raises(TypeError, match="preds is float16; the kernel computes in float32"):
        run_kernel(giou, good.astype(np.float16), good)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "width = jnp.maximum(jnp.minimum(px2, tx2) - jnp.maximum(px1, tx1), 0.0)",
            "width = jnp.minimum(px2, tx2) - jnp.maximum(px1, tx1)",
        ),
        ("padded[1] // BLOCK_LANES)", "padded[1] // BLOCK_LANES - 1)"),
    ],
    ids=["no guard against negative overlap", "last block left out"],
)
def test_the_comparison_notices(old: str, new: str) -> None:
    """A kernel with the mistake is not within the tolerance, so the agreement above means something."""
    preds, targets = boxes()
    broken = nkitools.pallas.run(mutant(old, new).giou, preds, targets).outputs
    assert not worst_error(broken, preds, targets) <= TOLERANCE


@pytest.mark.parametrize("shape", [(1024, 256), (3, 5), (130, 129)])
def test_it_lowers_for_the_tpu(shape: tuple[int, int]) -> None:
    """Interpretation accepts blocks that a TPU refuses; JAX's lowering to the TPU does not."""
    boxes_of_shape = jax.ShapeDtypeStruct((*shape, 4), np.float32)
    exported = jax.export.export(giou, platforms=["tpu"])(boxes_of_shape, boxes_of_shape)
    assert "tpu_custom_call" in exported.mlir_module()


@pytest.mark.parametrize("batch", [1024, 3])
def test_it_compiles_for_tpus(batch: int) -> None:
    """The TPU compiler takes blocks of 128 x 128, and the lower ones of a small batch."""
    assert_compiles(giou, *[zeros(np.float32, batch, 256, 4)] * 2)
