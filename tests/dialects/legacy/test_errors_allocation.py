"""AWS's codes about kernels with direct allocation, and the rule that all tensors are allocated by hand or none."""

from __future__ import annotations

from typing import Any

import neuronxcc.nki as nki
import neuronxcc.nki.compiler as ncc
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np
import pytest

from tests.dialects.legacy.errors import Case, check, marked_line, run
from tests.dialects.legacy.running import random

X = random(128, 64)


def _sbuf(address: int, *shape: int, dtype: Any = np.float32) -> Any:
    return nl.ndarray(shape or (128, 64), dtype=dtype, buffer=ncc.sbuf.mod_alloc(base_addr=address))


def no_bias(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = _sbuf(0)
    tile[...] = nl.load(x)
    tile[...] = nl.exp(tile)  # here
    nl.store(out, tile)
    return out


def no_bias_but_scale(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile, scale = _sbuf(0), _sbuf(256, 128, 1)
    tile[...] = nl.load(x)
    scale[...] = 2.0
    tile[...] = nisa.activation(op=nl.exp, data=tile, scale=scale)  # here
    nl.store(out, tile)
    return out


def own_bias(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile, zero = _sbuf(0), _sbuf(256, 128, 1)
    tile[...] = nl.load(x)
    zero[...] = 0
    tile[...] = nisa.activation(op=nl.exp, data=tile, bias=zero)
    nl.store(out, tile)
    return out


def with_a_value(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.full((128, 64), fill_value=1.0, dtype=x.dtype, buffer=ncc.sbuf.mod_alloc(base_addr=0))  # here
    nl.store(out, tile)
    return out


def with_a_value_later(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = _sbuf(0)
    tile[...] = 1.0
    nl.store(out, tile)
    return out


def transposed_on_tensor_engine(x: Any) -> Any:
    out = nl.ndarray((64, 128), dtype=x.dtype, buffer=nl.shared_hbm)
    tile, turned = _sbuf(0), _sbuf(1024, 64, 128)
    swapped = nl.ndarray((64, 128), dtype=x.dtype, buffer=ncc.psum.mod_alloc(base_bank=0))
    tile[...] = nl.load(x)
    swapped[...] = nisa.nc_transpose(tile)  # here
    turned[...] = nl.copy(swapped)
    nl.store(out, turned)
    return out


def transposed_by_identity(x: Any) -> Any:
    out = nl.ndarray((64, 128), dtype=x.dtype, buffer=nl.shared_hbm)
    tile, turned, identity = _sbuf(0), _sbuf(1024, 64, 128), _sbuf(2048, 128, 128)
    swapped = nl.ndarray((64, 128), dtype=x.dtype, buffer=ncc.psum.mod_alloc(base_bank=0))
    identity[...] = nl.load(nl.shared_constant(np.identity(128, np.float32)))
    tile[...] = nl.load(x)
    swapped[...] = nisa.nc_matmul(tile, identity)
    turned[...] = nl.copy(swapped)
    nl.store(out, turned)
    return out


def product_of_rows(x: Any) -> Any:
    out = nl.ndarray((64, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    tile, result = _sbuf(0, 64, 64), _sbuf(1024, 64, 64)
    total = nl.ndarray((64, 64), dtype=x.dtype, buffer=ncc.psum.mod_alloc(base_bank=0))
    tile[...] = nl.load(x[0:64, :])
    total[...] = nl.matmul(tile, tile)  # here
    result[...] = nl.copy(total)
    nl.store(out, result)
    return out


CASES = [
    Case("err_bias_tensor_must_be_specified_in_allocation", "NK614", no_bias, own_bias),
    Case("err_bias_tensor_must_be_specified_in_allocation", "NK614", no_bias_but_scale, own_bias),
    Case("err_tensor_creation_on_scratchpad_with_init_value_not_supported", "NK614", with_a_value, with_a_value_later),
    Case(
        "err_transpose_on_tensor_engine_not_allowed_in_allocated_kernel",
        "NK614",
        transposed_on_tensor_engine,
        transposed_by_identity,
    ),
    Case("err_transpose_on_tensor_engine_not_allowed_in_allocated_kernel", "NK614", product_of_rows, own_bias),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.bad.__name__)
def test_a_code_is_reported_at_its_line(case: Case) -> None:
    """Under both names; the corrected kernel runs without errors."""
    check(case)


def mixed(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    automatic = nl.ndarray(x.shape, dtype=x.dtype)  # here
    direct = _sbuf(0)
    automatic[...] = nl.load(x)
    direct[...] = nl.copy(automatic)
    nl.store(out, direct)
    return out


def implicit(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    direct = _sbuf(0)
    direct[...] = nl.multiply(nl.load(x), 2.0)  # here
    nl.store(out, direct)
    return out


def lost_in_hbm(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    scratch = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.private_hbm)  # here
    direct = _sbuf(0)
    direct[...] = nl.load(x)
    nl.store(scratch, direct)
    nl.store(out, direct)
    return out


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (mixed, "`automatic` (SBUF, float32 [128, 64]) is allocated automatically and"),
        (implicit, "dma_copy writes to a tensor (SBUF, float32 [128, 64]) that the call made without an allocation"),
        (lost_in_hbm, "Non IO HBM tensor is not supported in allocated NKI kernel: scratch"),
    ],
)
def test_all_tensors_or_none_are_allocated(kernel: Any, words: str) -> None:
    """NK614 at the tensor, or at the call that needs one; with force_auto_alloc nothing is allocated directly."""
    (told,) = run(kernel, (X,)).findings
    assert (told.rule, told.line) == ("NK614", marked_line(kernel))
    assert words in told.message
    done = run(ncc.force_auto_alloc(nki.jit(kernel)), (X,))
    assert done.findings == []
    factor = 2 if kernel is implicit else 1
    np.testing.assert_array_equal(done.outputs, factor * X)
