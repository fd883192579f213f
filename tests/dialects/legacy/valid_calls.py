"""A legal call of each function of the legacy dialect, for tests that spoil one argument of it at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np

from tests.dialects.modern import test_language_calls as modern

Arguments = dict[str, Any]


def tile(*shape: int, dtype: Any = np.float32, value: Any = 1, buffer: Any = nl.sbuf) -> Any:
    """A written tensor."""
    made = nl.ndarray(shape, dtype=dtype, buffer=buffer)
    made.storage.array[...] = value
    made.storage.mark_written(made.base.layout, made.base.byte_offset)
    return made


def one() -> Arguments:
    """Of a function of one tile."""
    return {"x": tile(8, 4)}


def two() -> Arguments:
    """Of a function of two tiles."""
    return {"x": tile(8, 4), "y": tile(8, 4)}


def bits() -> Arguments:
    """Of a function of two tiles of integers."""
    return {"x": tile(8, 4, dtype=np.uint32), "y": tile(8, 4, dtype=np.uint32)}


def along() -> Arguments:
    """Of a reduction."""
    return {"x": tile(8, 2, 2), "axis": 2}


def new() -> Arguments:
    """Of a function that makes a tensor."""
    return {"shape": (8, 4), "dtype": np.float32}


def data(**more: Any) -> Arguments:
    """Of an instruction of one tile."""
    return {"data": tile(8, 4), **more}


def chosen(**more: Any) -> Arguments:
    """Of an instruction that chooses by a predicate."""
    return {"dst": tile(8, 4), "predicate": tile(8, 4, dtype=np.uint8), **more}


def bounds() -> Arguments:
    """Of nisa.range_select."""
    return {"on_true_tile": tile(128, 8), "comp_op0": np.greater_equal, "comp_op1": np.less} | {
        "bound0": tile(128, 1),
        "bound1": tile(128, 1),
        "reduce_res": tile(128, 1),
        "reduce_op": np.max,
        "reduce_cmd": nisa.reduce_cmd.reset_reduce,
    }


def offset() -> Any:
    """A part of a tile that begins where another tile says."""
    return tile(8, 16)[nl.arange(8)[:, None], tile(1, 1, dtype=np.int32, value=0) + nl.arange(4)[None, :]]


def rows() -> Any:
    """Rows of a tensor that a tile chooses."""
    return tile(8, 4, buffer=nl.hbm)[tile(8, 1, dtype=np.int32, value=0), nl.arange(4)[None, :]]


def those(names: tuple[str, ...], make: Callable[[], Arguments]) -> dict[str, Callable[[], Arguments]]:
    """The functions of these names that the dialect has."""
    return {name: make for name in names if name in nl.__all__}


LANGUAGE: dict[str, Callable[[], Arguments]] = {
    **those(modern.TWO, two),
    **those(modern.BITS, bits),
    **those(modern.ONE, one),
    **those(modern.ALONG, along),
    **those(("ndarray", "zeros", "ones", "rand"), new),
    "copy": lambda: {"src": tile(8, 4)},
    "invert": lambda: {"x": tile(8, 4, dtype=np.int32)},
    "rms_norm": lambda: {"x": tile(8, 4), "w": tile(1, 4), "axis": 1, "n": 4},
    "where": lambda: {"condition": tile(8, 4), **two()},
    "dropout": lambda: {"x": tile(8, 4), "rate": 0.5},
    "full": lambda: {"shape": (8, 4), "fill_value": 2.0, "dtype": np.float32},
    "zeros_like": lambda: {"a": tile(8, 4)},
    "empty_like": lambda: {"a": tile(8, 4)},
    "random_seed": lambda: {"seed": tile(1, 1, dtype=np.int32)},
    "expand_dims": lambda: {"data": tile(8, 4), "axis": 1},
    "broadcast_to": lambda: {"src": tile(8, 1), "shape": (8, 4)},
    "matmul": lambda: {"x": tile(8, 4), "y": tile(8, 6), "transpose_x": True},
    "load": lambda: {"src": tile(8, 4, buffer=nl.hbm)},
    "load_transpose2d": lambda: {"src": tile(8, 4, buffer=nl.hbm)},
    "store": lambda: {"dst": tile(8, 4, buffer=nl.hbm), "value": tile(8, 4)},
    "atomic_rmw": lambda: {"dst": rows(), "value": tile(8, 4), "op": np.add},
    "gather_flattened": lambda: {"data": tile(8, 4), "indices": tile(8, 4, dtype=np.uint32, value=0)},
    "device_print": lambda: {"prefix": "tile", "x": tile(8, 4)},
    "program_id": lambda: {"axis": 0},
    "num_programs": lambda: {"axes": 0},
    "program_ndim": dict,
    "shared_constant": lambda: {"constant": np.ones((8, 4), np.float32)},
    "shared_identity_matrix": lambda: {"n": 8},
    "finfo": lambda: {"dtype": np.float32},
    "static_cast": lambda: {"input_data": tile(8, 4), "dtype": np.int32},
    "par_dim": lambda: {"size": 4},
    "nc": lambda: {"cores": 2},
    "all_reduce": lambda: {"x": tile(8, 4), "op": np.add, "program_axes": 0},
    "gemm_grid": dict,
    "gemm_stationary_grid": dict,
}
ISA: dict[str, Callable[[], Arguments]] = {
    "activation": lambda: data(op=np.exp),
    "activation_reduce": lambda: data(op=np.exp, reduce_op=np.add, reduce_res=tile(8, 1)),
    "affine_select": lambda: {
        "pred": nl.arange(8)[:, None] > nl.arange(4)[None, :],
        "on_true_tile": tile(8, 4),
        "on_false_value": 0.0,
    },
    "bn_aggr": lambda: {"data": tile(8, 6)},
    "bn_stats": data,
    "dma_copy": lambda: {"dst": tile(8, 4, buffer=nl.hbm), "src": tile(8, 4)},
    "dma_transpose": lambda: {"src": tile(32, 64, dtype=np.float16, buffer=nl.hbm)},
    "dropout": lambda: data(prob=0.5),
    "iota": lambda: {"expr": nl.arange(4)[None, :] + nl.arange(8)[:, None], "dtype": np.int32},
    "local_gather": lambda: {"src_buffer": tile(16, 32), "index": tile(16, 1, dtype=np.uint16, value=0)},
    "max8": lambda: {"src": tile(8, 16)},
    "memset": lambda: {"shape": (8, 4), "value": 0.0, "dtype": np.float32},
    "nc_find_index8": lambda: {"data": tile(8, 16), "vals": tile(8, 8)},
    "nc_match_replace8": lambda: {"data": tile(8, 16), "vals": tile(8, 8), "imm": 0.0},
    "nc_matmul": lambda: {"stationary": tile(128, 64), "moving": tile(128, 32)},
    "nc_stream_shuffle": lambda: {"src": tile(32, 4), "dst": tile(32, 4), "shuffle_mask": list(range(32))},
    "nc_transpose": lambda: {"data": tile(64, 32)},
    "range_select": bounds,
    "reciprocal": data,
    "scalar_tensor_tensor": lambda: data(op0=np.add, operand0=1.0, op1=np.multiply, operand1=tile(8, 4)),
    "select_reduce": lambda: chosen(on_true=tile(8, 4), on_false=0.0),
    "sequence_bounds": lambda: {"segment_ids": tile(1, 8)},
    "tensor_copy": lambda: {"src": tile(8, 4)},
    "tensor_copy_dynamic_src": lambda: {"src": offset()},
    "tensor_copy_dynamic_dst": lambda: {"dst": offset(), "src": tile(8, 4)},
    "tensor_copy_predicated": lambda: chosen(src=tile(8, 4)),
    "tensor_partition_reduce": lambda: data(op=np.add),
    "tensor_reduce": lambda: data(op=np.add, axis=1),
    "tensor_scalar": lambda: data(op0=np.add, operand0=1.0),
    "tensor_scalar_reduce": lambda: data(op0=np.add, operand0=1.0, reduce_op=np.add, reduce_res=tile(8, 1)),
    "tensor_tensor": lambda: {"data1": tile(8, 4), "data2": tile(8, 4), "op": np.add},
    "tensor_tensor_scan": lambda: (
        {"data0": tile(8, 4), "data1": tile(8, 4), "initial": 0.0} | {"op0": np.multiply, "op1": np.add}
    ),
}
METHODS: dict[str, Callable[[], Arguments]] = {
    "astype": lambda: {"self": tile(8, 4), "dtype": np.int32},
    "broadcast_to": lambda: {"self": tile(8, 1), "shape": (8, 4)},
    "expand_dims": lambda: {"self": tile(8, 4), "axis": 1},
    "reshape": lambda: {"self": tile(8, 4), "shape": (8, 2, 2)},
    "view": lambda: {"self": tile(8, 4), "dtype": np.int32},
}
