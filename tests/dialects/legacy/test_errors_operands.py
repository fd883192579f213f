"""AWS's codes about shapes, dtypes and memories of operands."""

from __future__ import annotations

from typing import Any

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import neuronxcc.nki.typing as nt
import numpy as np
import pytest

from tests.dialects.legacy.errors import Case, check, outside
from tests.dialects.legacy.running import random


def _out(x: Any, *shape: int) -> Any:
    return nl.ndarray(shape or x.shape, dtype=x.dtype, buffer=nl.private_hbm)


def integer_bias(x: Any) -> Any:
    out = _out(x)
    bias = nisa.memset((128, 1), 1, dtype=nl.int8)
    nl.store(out, nisa.activation(op=nl.exp, data=nl.load(x), bias=bias))  # here
    return out


def float_bias(x: Any) -> Any:
    out = _out(x)
    bias = nisa.memset((128, 1), 1.2, dtype=nl.bfloat16)
    nl.store(out, nisa.activation(op=nl.exp, data=nl.load(x), bias=bias))
    return out


def half_scale(x: Any) -> Any:
    out = _out(x)
    scale = nisa.memset((128, 1), 1.2, dtype=nl.float16)
    nl.store(out, nisa.activation(op=nl.exp, data=nl.load(x), scale=scale))  # here
    return out


def row_scale(x: Any) -> Any:
    out = _out(x)
    scale = nisa.memset((128, 64), 1.2, dtype=nl.float32)
    nl.store(out, nisa.activation(op=nl.exp, data=nl.load(x), scale=scale))  # here
    return out


def vector_scale(x: Any) -> Any:
    out = _out(x)
    scale = nisa.memset((128, 1), 1.2, dtype=nl.float32)
    tile = nisa.activation(op=nl.exp, data=nl.load(x), scale=scale)
    nl.store(out, nisa.activation(op=nl.copy, data=tile, scale=1.2))
    return out


def wrong_annotation(x: Any) -> Any:
    out = _out(x)
    data: nt.tensor[128, 512] = nl.zeros((nl.par_dim(128), 64), dtype=x.dtype)  # here
    nl.store(out, data)
    return out


def right_annotation(x: Any) -> Any:
    out = _out(x)
    rows, columns = x.shape
    data: nt.tensor[rows, columns] = nl.zeros((nl.par_dim(128), 64), dtype=x.dtype)
    nl.store(out, data)
    return out


def three_dimensions(x: Any) -> Any:
    out = _out(x, 8, 128, 8)
    tile = nl.load(x.reshape((128, 8, 8)))
    nl.store(out, nl.transpose(tile))  # here
    return out


def transposed(x: Any) -> Any:
    out = _out(x, 64, 128)
    nl.store(out, nl.transpose(nl.load(x)))
    return out


def long_rows(x: Any) -> Any:
    out = _out(x, 256, 128)
    tile = nl.zeros((128, 256), dtype=x.dtype)
    nl.store(out, nl.transpose(tile))  # here
    return out


def blocks_as_tile(x: Any) -> Any:
    out = _out(x)
    tiles = nl.zeros((4, nl.par_dim(32), 64), dtype=x.dtype)
    nl.store(out, nl.add(tiles, 32))  # here
    return out


def block_by_block(x: Any) -> Any:
    out = _out(x)
    for i in range(4):
        tile = nl.zeros((32, 64), dtype=x.dtype)
        nl.store(out[nl.ds(32 * i, 32), :], nl.add(tile, 32))
    return out


def block_dimension(x: Any) -> Any:
    out = _out(x)
    tiles = nl.ndarray((4, nl.par_dim(32), 64), dtype=x.dtype)  # here
    for i in nl.affine_range(4):
        tiles[i] = nl.load(x[nl.ds(32 * i, 32), :])
        nl.store(out[nl.ds(32 * i, 32), :], tiles[i])
    return out


def many_partitions(x: Any) -> Any:
    out = _out(x)
    tile = nl.zeros((256, 64), dtype=x.dtype, buffer=nl.sbuf)  # here
    nl.store(out, tile[0:128, :])
    return out


def few_partitions(x: Any) -> Any:
    out = _out(x)
    tile = nl.zeros((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nl.store(out, tile[0:128, :])
    return out


def other_partitions(x: Any) -> Any:
    out = _out(x)
    row = nl.zeros((64, 64), dtype=x.dtype)
    nl.store(out, nisa.tensor_tensor(nl.load(x), row, op=nl.add))  # here
    return out


def broadcast_partitions(x: Any) -> Any:
    out = _out(x)
    row = nl.zeros((1, 64), dtype=x.dtype)
    nl.store(out, nisa.tensor_tensor(nl.load(x), row.broadcast_to((128, 64)), op=nl.add))
    return out


def small_destination(x: Any) -> Any:
    out = _out(x)
    column = nl.zeros((128, 1), dtype=x.dtype)
    column[...] = nl.load(x)  # here
    nl.store(out, column)
    return out


def large_destination(x: Any) -> Any:
    out = _out(x)
    tile = nl.zeros((128, 64), dtype=x.dtype)
    tile[...] = nl.load(x[:, 0:1])
    nl.store(out, tile)
    return out


def load_of_a_tile(x: Any) -> Any:
    out = _out(x)
    tile = nl.load(x)
    nl.store(out, nl.load(tile))  # here
    return out


def load_of_a_tensor(x: Any) -> Any:
    out = _out(x)
    nl.store(out, nl.exp(nl.load(x)))
    return out


CASES = [
    Case("err_activation_bias_invalid_type", "NK301", integer_bias, float_bias),
    Case("err_activation_scale_invalid_type", "NK301", half_scale, vector_scale),
    Case("err_activation_scale_scalar_or_vector", "NK109", row_scale, vector_scale),
    Case("err_annotation_shape_mismatch", "NK109", wrong_annotation, right_annotation),
    Case("err_exceed_max_supported_dimension", "NK110", three_dimensions, transposed),
    Case("err_size_of_dimension_exceed_arch_limit", "NK107", long_rows, transposed),
    Case("err_failed_to_infer_tile_from_local_tensor", "NK612", blocks_as_tile, block_by_block),
    Case("err_leading_dimension_of_tensor_must_be_partition", "NK612", block_dimension, block_by_block),
    Case("err_num_partition_exceed_arch_limit", "NK101", many_partitions, few_partitions),
    Case("err_num_partition_mismatch", "NK102", other_partitions, broadcast_partitions),
    Case("err_store_dst_shape_smaller_than_other_shape", "NK109", small_destination, large_destination),
    Case("err_unsupported_memory", "NK201", load_of_a_tile, load_of_a_tensor),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.code)
def test_a_code_is_reported_at_its_line(case: Case) -> None:
    """Under both names; the corrected kernel runs without errors."""
    check(case)


def test_calls_outside_of_a_kernel() -> None:
    """err_nki_api_outside_of_nki_kernel: at the line of the call."""
    told = outside(lambda: nl.zeros((128, 64), dtype=nl.float32))
    assert told.rule == "NK611"
    assert "err_nki_api_outside_of_nki_kernel" in told.message
    assert told.file == __file__


def test_nested_kernels_have_no_grid() -> None:
    """err_nested_kernel_with_spmd_grid: at the line of the inner call."""

    @nki.trace
    def inner(x: Any, out: Any) -> None:
        nl.store(out, nl.load(x))

    def bad(x: Any) -> Any:
        out = _out(x)
        inner[2](x, out)  # here
        return out

    def good(x: Any) -> Any:
        out = _out(x)
        inner(x, out)
        return out

    check(Case("err_nested_kernel_with_spmd_grid", "NK610", bad, good))


def test_annotations_are_those_of_the_value_in_each_iteration() -> None:
    """Sizes are evaluated where the statement stands; a name that only a type checker knows says nothing."""

    def bad(x: Any) -> Any:
        out = _out(x)
        for i in range(2):
            half: nt.tensor[64, 32 * (i + 1)] = nl.load(x[nl.ds(64 * i, 64), :])  # here
            nl.store(out[nl.ds(64 * i, 64), :], half)
        return out

    def good(x: Any) -> Any:
        out = _out(x)
        half: Tile[1] = nl.load(x)  # type: ignore[name-defined]  # noqa: F821
        other: np.ndarray = nl.exp(half)
        nl.store(out, other)
        return out

    check(Case("err_annotation_shape_mismatch", "NK109", bad, good, (random(128, 64),)))
