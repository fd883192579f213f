"""Example kernels on a NeuronCore, for `nkitools doctor --hardware`: each test names the way in that it takes."""

import os

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest

DEGREE = int(os.environ.get("NEURON_LOGICAL_NC_CONFIG", "1"))
X = np.linspace(-3, 3, 128 * 256, dtype=np.float32).reshape(128, 256)
EXPONENTS = np.exp(X - X.max(axis=1, keepdims=True))
SOFTMAX = EXPONENTS / EXPONENTS.sum(axis=1, keepdims=True)
WAYS = ("numpy", "torch", "jax")


@nki.jit
def double(x):
    """Each core of the grid doubles its share of the columns."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    width = x.shape[1] // nl.num_programs(0)
    start = nl.program_id(0) * width
    tile = nl.load(x[:, nl.ds(start, width)])
    nl.store(out[:, nl.ds(start, width)], nl.add(tile, tile))
    return out


@nki.jit
def softmax(x):
    """Softmax of each row."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile, shifted = nl.load(x), nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=shifted, data=tile, op0=nl.subtract, operand0=nl.max(tile, axis=1, keepdims=True))
    exponents = nl.exp(shifted)
    share = nl.reciprocal(nl.sum(exponents, axis=1, keepdims=True))
    nisa.tensor_scalar(dst=shifted, data=exponents, op0=nl.multiply, operand0=share)
    nl.store(out, shifted)
    return out


@nki.jit
def beyond(x, index):
    """Copy rows that a table does not have."""
    out = nl.ndarray((8, x.shape[1]), dtype=x.dtype, buffer=nl.shared_hbm)
    rows = x.ap(pattern=[[x.shape[1], 8], [1, x.shape[1]]], offset=0, vector_offset=nl.load(index), indirect_dim=0)
    nisa.dma_copy(dst=out, src=rows)
    return out


@nki.jit
def too_tall(x):
    """Fill a tile of 256 partitions, which the compiler refuses."""
    out = nl.ndarray((256, 128), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((256, 128), dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=tile, value=0)
    nisa.dma_copy(dst=out, src=tile)
    return out


def given(way, array):
    """``array`` in the framework of a way."""
    if way == "torch":
        import torch

        return torch.from_numpy(array.copy())
    if way == "jax":
        import jax

        return jax.numpy.asarray(array)
    return array


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("kernel", "expected"), [(double, 2 * X), (softmax, SOFTMAX)], ids=["double", "softmax"])
def test_agrees(run_kernel, record_property, way, kernel, expected):
    """The greatest error against NumPy is recorded, of the simulation and of the device."""
    grid = DEGREE if kernel is double and DEGREE > 1 else None
    out = np.asarray(run_kernel(kernel, given(way, X), grid=grid))
    record_property("greatest_error", float(np.abs(out - expected).max()))
    np.testing.assert_allclose(out, expected, rtol=1e-2, atol=1e-4)


@pytest.mark.parametrize("way", WAYS)
def test_time(kernel_benchmark, way):
    """Time a round; the estimate stands in the reason why the simulation is skipped."""
    kernel_benchmark(softmax, given(way, X))


@pytest.mark.hw("neuron")
@pytest.mark.parametrize("way", WAYS)
def test_compile_error(run_kernel, way):
    """Fails with the compiler's own words."""
    run_kernel(too_tall, given(way, X))


@pytest.mark.hw("neuron")
@pytest.mark.parametrize("way", WAYS)
def test_out_of_bounds(run_kernel, way):
    """Fails with the runtime's own words; the tests after it have another process."""
    index = np.arange(1000, 1008, dtype=np.int32).reshape(8, 1)
    run_kernel(beyond, given(way, X), given(way, index))
