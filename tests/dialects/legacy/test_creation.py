"""Creating tensors."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import neuronxcc.nki.compiler as ncc
import neuronxcc.nki.language as nl
import numpy as np
import pytest

from tests.dialects.legacy.running import outputs, random, refusal


def made(create: Any) -> Any:
    """A kernel that stores a tile which it creates."""

    def kernel(x: Any) -> Any:
        tile = create(x)
        result = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
        nl.store(result, tile)
        return result

    return kernel


@pytest.mark.parametrize(
    ("create", "expected"),
    [
        (lambda x: nl.zeros((8, 6), dtype=nl.float32), np.zeros((8, 6), np.float32)),
        (lambda x: nl.ones((8, 6), nl.bfloat16), np.ones((8, 6), ml_dtypes.bfloat16)),
        (lambda x: nl.full((8, 6), 2.5, np.float16), np.full((8, 6), 2.5, np.float16)),
        (lambda x: nl.full((8, 6), -3, nl.int32, buffer=nl.psum), np.full((8, 6), -3, np.int32)),
        (lambda x: nl.zeros_like(x), np.zeros((4, 5), np.float32)),
        (lambda x: nl.zeros_like(x, dtype=nl.int8), np.zeros((4, 5), np.int8)),
        (lambda x: nl.zeros([nl.par_dim(8), 6], dtype="float32", name="z"), np.zeros((8, 6), np.float32)),
        (lambda x: nl.zeros((8, 6), dtype=nl.float32, lazy_initialization=True), np.zeros((8, 6), np.float32)),
        (lambda x: nl.full((8, 6), 1, nl.float32, buffer=ncc.sbuf.auto_alloc()), np.ones((8, 6), np.float32)),
    ],
)
def test_tensors_with_a_value(create: Any, expected: Any) -> None:
    """zeros, ones, full and zeros_like, in SBUF unless another memory is asked for."""
    measured = outputs(made(create), random(4, 5))
    assert measured.dtype == expected.dtype
    np.testing.assert_array_equal(measured, expected)


def test_the_default_memory_is_sbuf() -> None:
    """Also that of empty_like and zeros_like of a tensor in HBM."""

    def kernel(x: Any) -> Any:
        for tensor in (nl.ndarray((4, 5), dtype=x.dtype), nl.empty_like(x), nl.zeros_like(x)):
            assert tensor.buffer is nl.sbuf
        assert nl.empty_like(x, buffer=nl.hbm).buffer is nl.private_hbm
        return x

    outputs(kernel, random(4, 5))


def test_constants() -> None:
    """shared_constant and shared_identity_matrix live in HBM and are loaded."""

    def kernel() -> Any:
        results = []
        constant = nl.shared_constant(np.arange(12).reshape(3, 4), dtype=nl.float32)
        for tensor in (constant, nl.shared_identity_matrix(5, dtype=nl.bfloat16)):
            result = nl.ndarray(tensor.shape, dtype=tensor.dtype, buffer=nl.shared_hbm)
            nl.store(result, nl.load(tensor))
            results.append(result)
        return tuple(results)

    constant, identity = outputs(kernel)
    np.testing.assert_array_equal(constant, np.arange(12, dtype=np.float32).reshape(3, 4))
    np.testing.assert_array_equal(identity, np.eye(5, dtype=ml_dtypes.bfloat16))


@pytest.mark.parametrize(
    ("create", "rule"),
    [
        (lambda x: nl.ones((8, 6), dtype=nl.float32, buffer=nl.shared_hbm), "NK205"),
        (lambda x: nl.full((8, 6), 1, dtype=nl.float32, buffer=nl.hbm), "NK205"),
        (lambda x: nl.zeros((128,), dtype=nl.float32), "NK110"),
        (lambda x: nl.zeros((256, 4), dtype=nl.float32), "NK101"),
        (lambda x: nl.zeros((8, 6), dtype=np.float64), "NK301"),
        (lambda x: nl.zeros((8, 0), dtype=nl.float32), "NK609"),
        (lambda x: nl.full((8, 6), x, nl.float32), "NK609"),
        (lambda x: nl.ndarray((8, 6), dtype=nl.float32, init=0), "NK609"),
        (lambda x: nl.ndarray((8, 6), dtype=nl.float32, buffer="dram"), "NK609"),
        (lambda x: nl.ndarray((8, 6), dtype=nl.float32, buffer=ncc.sbuf.mod_alloc(base_addr=2)), "NK207"),
        (lambda x: nl.shared_constant(3.0), "NK609"),
        (lambda x: nl.zeros_like(np.ones((8, 6))), "NK609"),
    ],
)
def test_what_is_refused(create: Any, rule: str) -> None:
    """Values in HBM, shapes, dtypes and keywords that are not possible are refused by rule."""
    assert refusal(lambda x: create(x), random(8, 6)).rule == rule
