"""The three ReLUs and their gradients: bit-equal to NumPy's float32 for every size, silent, and NaN stays NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from cpp_ops.relu import build, reference
from nkitools.customop import Library
from nkitools.rules.finding import KernelError

SIZES = [1, 5, 7, 8, 9, 1001, 1024, 4096, 8193]
CHUNK = 1024  # elements that a core takes at once

_libraries: dict[str, Library] = {}


@pytest.fixture(params=build.STAGES)
def relu(request: pytest.FixtureRequest) -> Library:
    """The operators of each stage."""
    return library(request.param)


def library(stage: str) -> Library:
    if stage not in _libraries:
        _libraries[stage] = build.library(stage)
    return _libraries[stage]


def values_of(*shape: int, seed: int = 5) -> npt.NDArray[np.float32]:
    """Normal numbers, among them both zeros, both infinities and NaN where there is room."""
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    special = np.array([-0.0, np.nan, np.inf, -np.inf, 0.0, np.finfo(np.float32).tiny / 2], np.float32)
    values.reshape(-1)[-1 : -1 - min(values.size, special.size) : -1] = special[: values.size]
    return values


@pytest.mark.parametrize("size", SIZES)
def test_forward_and_backward_give_numpys_bits(run_kernel: Callable[..., Any], relu: Library, size: int) -> None:
    """Sizes that cores and chunks divide, and sizes that they do not; no finding of any rule."""
    values, gradient = values_of(1, size), values_of(1, size, seed=6)
    forward = run_kernel(relu.relu_forward, values, reference=reference.relu_forward)
    assert forward.tobytes() == reference.relu_forward(values).tobytes()
    assert list(run_kernel.run.findings) == []
    backward = run_kernel(relu.relu_backward, gradient, values)
    assert backward.tobytes() == reference.relu_backward(gradient, values).tobytes()
    assert list(run_kernel.run.findings) == []


def test_the_layers_of_the_tutorial(run_kernel: Callable[..., Any], relu: Library) -> None:
    """A batch of 32 through the two hidden layers."""
    for features in (4096, 2048):
        values = values_of(32, features)
        assert run_kernel(relu.relu_forward, values).tobytes() == reference.relu_forward(values).tobytes()


@pytest.mark.parametrize("stage", ["tcm", "multicore"])
@pytest.mark.parametrize("shape", [(1001,), (3, 5, 7), (2, 2, 2, 2, 2)])
def test_tcm_takes_any_rank(stage: str, shape: tuple[int, ...]) -> None:
    """A TCM accessor sees its tensor flattened."""
    values = values_of(*shape)
    run = library(stage).relu_forward.run(values)
    assert run.outputs.shape == shape
    assert run.outputs.tobytes() == reference.relu_forward(values).tobytes()
    assert run.findings == []


def test_element_accessors_take_matrices() -> None:
    """Their rank is compiled in, and another one is an error that names it."""
    with pytest.raises(KernelError, match="an accessor of 2 dimensions is opened for argument 0"):
        library("element").relu_forward(values_of(5))


def test_the_stages_move_their_elements_as_they_say() -> None:
    """Element by element on one core, in bursts on one core, in bursts on all: the point of the three stages."""
    values = values_of(5, 1001)
    (single,) = library("element").relu_forward.run(values).cores
    assert (single.element_reads, single.element_writes, single.tcm_reads) == (5005, 5005, 0)
    (single,) = library("tcm").relu_forward.run(values).cores
    assert (single.element_reads, single.tcm_reads, single.tcm_bytes_read) == (0, 5, 4 * 5005)
    cores = library("multicore").relu_forward.run(values).cores
    assert [core.tcm_bytes_written // 4 for core in cores] == [626] * 5 + [625] * 3
    assert all(core.tcm_peak == 4 * CHUNK and core.tcm_leaked == 0 for core in cores)


@pytest.mark.parametrize("order", ["reverse", 11])
def test_the_order_of_the_cores_does_not_matter(order: Any) -> None:
    """Each core writes a part of its own, whenever it runs."""
    values = values_of(3, 1001)
    run = library("multicore").relu_forward.run(values, order=order)
    assert run.outputs.tobytes() == reference.relu_forward(values).tobytes()
    assert run.findings == []
