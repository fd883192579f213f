"""AWS's codes about indices, masks and truth values."""

from __future__ import annotations

from typing import Any

import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import neuronxcc.nki.typing as nt
import numpy as np
import pytest

from tests.dialects.legacy.errors import Case, check
from tests.dialects.legacy.running import random

ROWS = np.arange(0, 128, 2, dtype=np.int32).reshape(64, 1)


def _out(x: Any, *shape: int) -> Any:
    return nl.ndarray(shape or x.shape, dtype=x.dtype, buffer=nl.private_hbm)


def one_dimension(x: Any) -> Any:
    tile = nl.load(x)
    out = _out(x, 64, 1)
    i = nl.arange(64)
    nl.store(out, nl.exp(tile[i, 0]))  # here
    return out


def two_dimensions(x: Any) -> Any:
    tile = nl.load(x)
    out = _out(x, 64, 1)
    i = nl.arange(64)[:, None]
    nl.store(out, nl.exp(tile[i, 0]))
    return out


def assigned_index(x: Any) -> Any:
    out = _out(x, 1, 8)
    _, i = nl.mgrid[0:1, 0:8]
    i[0, 5] = 1024  # here
    nl.store(out, nisa.iota(i, dtype=nl.float32))
    return out


def assigned_tile(x: Any) -> Any:
    out = _out(x, 1, 8)
    _, i = nl.mgrid[0:1, 0:8]
    tile = nisa.iota(i, dtype=nl.float32)
    tile[0, 5] = 1024
    nl.store(out, tile)
    return out


def control_by_arange(x: Any) -> Any:
    tile = nl.load(x)
    out = _out(x)
    i = nl.arange(64)[None, :]
    if i > 32:  # here
        tile[...] = nl.exp(tile)
    nl.store(out, tile)
    return out


def masked_by_arange(x: Any) -> Any:
    tile = nl.load(x)
    out = _out(x)
    i = nl.arange(64)[None, :]
    tile[...] = nl.exp(tile, mask=i > 32)
    nl.store(out, tile)
    return out


def dynamic_copy(x: Any, rows: Any) -> Any:
    tile, index = nl.load(x), nl.load(rows[0:1, :])
    out = _out(x, 128, 8)
    i_p, i_f = nl.arange(128)[:, None], nl.arange(8)[None, :]
    kept = nl.ndarray((128, 8), dtype=x.dtype)
    kept[i_p, i_f] = tile[i_p, index[0, 0] + i_f]  # here
    nl.store(out, kept)
    return out


def dynamic_copy_by_instruction(x: Any, rows: Any) -> Any:
    tile, index = nl.load(x), nl.load(rows[0:1, :])
    out = _out(x, 128, 8)
    i_p, i_f = nl.arange(128)[:, None], nl.arange(8)[None, :]
    kept = nl.ndarray((128, 8), dtype=x.dtype)
    kept[i_p, i_f] = nisa.tensor_copy_dynamic_src(tile[i_p, index[0, 0] + i_f])
    nl.store(out, kept)
    return out


def indirect_transpose(x: Any, rows: Any) -> Any:
    index = nl.load(rows)
    out = _out(x, 64, 64)
    i_f = nl.arange(64)[None, :]
    nl.store(out, nl.load_transpose2d(x[index, i_f]))  # here
    return out


def direct_transpose(x: Any, rows: Any) -> Any:
    out = _out(x, 64, 64)
    nl.store(out, nl.load_transpose2d(x[0:64, :]))
    return out


def indirect_columns(x: Any, rows: Any) -> Any:
    index = nl.load(rows)
    out = _out(x, 64, 64)
    i_p = nl.arange(64)[:, None]
    nl.store(out, nl.load(x[i_p, index]))  # here
    return out


def indirect_rows(x: Any, rows: Any) -> Any:
    index = nl.load(rows)
    out = _out(x, 64, 64)
    i_f = nl.arange(64)[None, :]
    nl.store(out, nl.load(x[index, i_f]))
    return out


def mixed(x: Any) -> Any:
    tile = nl.load(x)
    out = _out(x)
    i = nl.arange(128)[:, None]
    nl.store(out, nl.exp(tile[i, :]))  # here
    return out


def not_mixed(x: Any) -> Any:
    tile = nl.load(x)
    out = _out(x)
    i, j = nl.arange(128)[:, None], nl.arange(64)[None, :]
    nl.store(out[:, :], nl.exp(tile[i, j]))
    return out


def remainder_in_mask(x: Any) -> Any:
    out = _out(x)
    i_p, i_f = nl.mgrid[0:128, 0:64]
    nl.store(out, nl.load(x))
    nl.store(out[i_p, i_f], 0, mask=(i_p % 4 < 2))  # here
    return out


def affine_mask(x: Any) -> Any:
    out = _out(x)
    i_p, i_f = nl.mgrid[0:128, 0:64]
    nl.store(out, nl.load(x))
    for i in range(8):
        nl.store(out[i_p, i_f], i, mask=(2 * i_p + 3 * i + 1 < 20))
    return out


def scalar_in_mask(x: Any) -> Any:
    out = _out(x)
    first = nl.load(x[0:1, 0:1])
    nl.store(out, nl.load(x), mask=nt.scalar(first) > 2)  # here
    return out


def beyond(x: Any) -> Any:
    out = _out(x)
    for i in nl.affine_range(2):
        tile = nl.mgrid[0:128, 0:48]
        nl.store(out[tile.p, i * 48 + tile.x], value=0)  # here
    return out


def beyond_under_mask(x: Any) -> Any:
    out = _out(x)
    for i in nl.affine_range(2):
        tile = nl.mgrid[0:128, 0:48]
        nl.store(out[tile.p, i * 48 + tile.x], value=0, mask=i * 48 + tile.x < 64)
    return out


def truth_of_many(x: Any) -> Any:
    tile = nl.load(x)
    out = _out(x)
    positive = not (tile > 0)  # here
    nl.store(out, positive)
    return out


def inverted(x: Any, bias: Any = None) -> Any:
    tile = nl.load(x)
    out = _out(x)
    if bias is not None:
        tile = tile + nl.load(bias)
    nl.store(out, nl.copy(~(tile > 0), dtype=x.dtype))
    return out


def truth_of_one(x: Any) -> Any:
    condition = nl.load(x[0:1, 0:1])
    out = _out(x)
    nl.store(out, nl.load(x))
    if condition:  # here
        nl.store(out, 1)
    return out


def known_condition(x: Any, condition: bool = True) -> Any:
    out = _out(x)
    nl.store(out, nl.load(x))
    if condition:
        nl.store(out, 1)
    return out


X = random(128, 64)
CASES = [
    Case("err_1d_arange_not_supported", "NK603", one_dimension, two_dimensions),
    Case("err_cannot_assign_to_index", "NK603", assigned_index, assigned_tile),
    Case("err_control_flow_condition_depending_on_arange", "NK602", control_by_arange, masked_by_arange),
    Case(
        "err_copy_dynamic_indirect_indices_not_natively_supported",
        "NK603",
        dynamic_copy,
        dynamic_copy_by_instruction,
        (X, ROWS),
    ),
    Case(
        "err_indirect_indices_are_not_supported_with_nki_api", "NK603", indirect_transpose, direct_transpose, (X, ROWS)
    ),
    Case("err_indirect_indices_free_dim", "NK603", indirect_columns, indirect_rows, (X, ROWS)),
    Case("err_unsupported_mixing_basic_advanced_tensor_indexing", "NK603", mixed, not_mixed),
    Case("err_unsupported_expression_in_mask", "NK604", remainder_in_mask, affine_mask),
    Case("err_unsupported_expression_in_mask", "NK604", scalar_in_mask, affine_mask),
    Case("err_tensor_access_out_of_bound", "NK402", beyond, beyond_under_mask),
    Case("err_ambiguous_tensor_truth_value", "NK602", truth_of_many, inverted),
    Case("err_dynamic_control_flow_not_supported", "NK602", truth_of_one, known_condition),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.bad.__name__)
def test_a_code_is_reported_at_its_line(case: Case) -> None:
    """Under both names; the corrected kernel runs without errors."""
    check(case)
