"""One valid call of each instruction of nki.isa, for tests that spoil one argument of it at a time.

`valid_call` makes the tensors in a running kernel; every input is written. Chips: each call is legal on the chip that
`CHIPS` names, trn2 for the others.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.facts.versions import names_of
from nkitools.strategies.calls import Tile, calls
from tests.nki_versions import SINCE_0_7

# Functions that take no argument, or none that is wrong alone.
UNCALLED = {"get_nc_version", "get_nc_sub_version", "register_alloc"}
# Functions that need two cores, which have tests of their own.
BETWEEN_CORES = {"core_barrier", "sendrecv", "sendrecv_compute"}
CHIPS = {"activate2": "trn3", "exponential": "trn3", "rand2": "trn3", "nc_matmul_mx": "trn3", "quantize_mx": "trn3"}


def tile(*shape: int, dtype: Any = nl.float32, value: Any = 1, buffer: Any = nl.sbuf) -> Any:
    """A written tile."""
    made = nl.ndarray(shape, dtype, buffer)
    nisa.memset(made, value if dtype in (nl.int32, nl.uint32, nl.uint8, nl.uint16) else float(value))
    return made


def _matmul() -> dict[str, Any]:
    return {"dst": nl.ndarray((64, 32), nl.float32, nl.psum), "stationary": tile(128, 64), "moving": tile(128, 32)}


def _matmul_mx() -> dict[str, Any]:
    found: dict[str, Any] = {"dst": nl.ndarray((16, 8), nl.float32, nl.psum)}
    for role, free in (("stationary", 16), ("moving", 8)):
        packed = nl.ndarray((32, free), nl.float8_e4m3fn_x4)
        nisa.memset(packed, 0)
        found[role] = packed
    return found | {"stationary_scale": tile(4, 16, dtype=nl.uint8), "moving_scale": tile(4, 8, dtype=nl.uint8)}


def _dma() -> dict[str, Any]:
    return {"dst": nl.ndarray((8, 4), nl.float32, nl.shared_hbm), "src": tile(8, 4)}


def _select() -> dict[str, Any]:
    return {"dst": tile(8, 4), "pattern": [[1, 4]], "channel_multiplier": 1, "on_true_tile": tile(8, 4)} | {
        "on_false_value": 0.0
    }


def _range_select() -> dict[str, Any]:
    return {"dst": tile(128, 8), "on_true_tile": tile(128, 8), "comp_op0": nl.greater_equal, "comp_op1": nl.less} | {
        "bound0": tile(128, 1),
        "bound1": tile(128, 1),
        "reduce_res": tile(128, 1),
    }


def _two(**more: Any) -> dict[str, Any]:
    return {"dst": tile(8, 4), "data": tile(8, 4), **more}


def _from(**more: Any) -> dict[str, Any]:
    return {"dst": tile(8, 4), "src": tile(8, 4), **more}


CALLS: dict[str, Any] = {
    "dma_copy": _dma,
    "tensor_copy": _from,
    "memset": lambda: {"dst": tile(8, 4), "value": 0.0},
    "tensor_copy_predicated": lambda: _from(predicate=tile(8, 4, dtype=nl.uint8)),
    "nc_matmul": _matmul,
    "nc_matmul_mx": _matmul_mx,
    "quantize_mx": lambda: {
        "dst": nl.ndarray((32, 8), nl.float8_e4m3fn_x4),
        "src": tile(32, 32, dtype=nl.bfloat16),
        "dst_scale": nl.ndarray((4, 8), nl.uint8),
    },
    "nc_transpose": lambda: {"dst": nl.ndarray((32, 64), nl.float32, nl.psum), "data": tile(64, 32)},
    "dma_transpose": lambda: {"dst": tile(64, 32, dtype=nl.bfloat16), "src": tile(32, 64, dtype=nl.bfloat16)},
    "tensor_tensor": lambda: {"dst": tile(8, 4), "data1": tile(8, 4), "data2": tile(8, 4), "op": nl.add},
    "tensor_scalar": lambda: _two(op0=nl.add, operand0=1.0),
    "tensor_reduce": lambda: {"dst": tile(8, 1), "op": nl.add, "data": tile(8, 4), "axis": 1},
    "tensor_partition_reduce": lambda: {"dst": tile(1, 4), "op": nl.add, "data": tile(8, 4)},
    "tensor_scalar_cumulative": lambda: _from(op0=nl.multiply, op1=nl.add, imm0=1.0),
    "activation": lambda: _two(op=nl.exp),
    "activation_reduce": lambda: _two(op=nl.exp, reduce_op=nl.add, reduce_res=tile(8, 1)),
    "activate2": lambda: _two(op=nl.exp, imm0=1.0, imm1=0.0, op0=nl.multiply, op1=nl.add),
    "iota": lambda: {"dst": nl.ndarray((8, 4), nl.int32), "pattern": [[1, 4]]},
    "affine_select": _select,
    "local_gather": lambda: {
        "dst": tile(16, 16),
        "src_buffer": tile(16, 32),
        "index": tile(16, 1, dtype=nl.uint16, value=0),
    },
    "nc_n_gather": lambda: _two(indices=tile(8, 4, dtype=nl.uint32, value=0)),
    "bn_stats": lambda: {"dst": nl.ndarray((8, 6), nl.float32), "data": tile(8, 4)},
    "bn_aggr": lambda: {"dst": nl.ndarray((8, 2), nl.float32), "data": tile(8, 6)},
    "tensor_tensor_scan": lambda: (
        {"dst": tile(8, 4), "data0": tile(8, 4), "data1": tile(8, 4), "initial": 0.0}
        | {"op0": nl.multiply, "op1": nl.add}
    ),
    "nc_stream_shuffle": lambda: {"dst": tile(32, 4), "src": tile(32, 4), "shuffle_mask": list(range(32))},
    "rng": lambda: {"dst": nl.ndarray((8, 4), nl.uint32)},
    "dropout": lambda: _two(prob=0.5),
    "set_rng_seed": lambda: {"src_seeds": tile(1, 1, dtype=nl.uint32)},
    "rand_set_state": lambda: {"src_seeds": tile(128, 6, dtype=nl.uint32)},
    "rand_get_state": lambda: {"dst": nl.ndarray((128, 6), nl.uint32)},
    "rand2": lambda: {"dst": nl.ndarray((8, 4), nl.float32), "min": 0.0, "max": 1.0},
    "exponential": _from,
    "reciprocal": _two,
    "max8": lambda: {"dst": tile(8, 8), "src": tile(8, 16)},
    "sequence_bounds": lambda: {"dst": nl.ndarray((1, 2, 8), nl.float32), "segment_ids": tile(1, 8)},
    "scalar_tensor_tensor": lambda: _two(op0=nl.add, operand0=1.0, op1=nl.multiply, operand1=tile(8, 4)),
    "tensor_scalar_reduce": lambda: _two(op0=nl.add, operand0=1.0, reduce_op=nl.add, reduce_res=tile(8, 1)),
    "dma_compute": lambda: {
        "dst": nl.ndarray((8, 4), nl.float32, nl.shared_hbm),
        "srcs": [tile(8, 4), tile(8, 4)],
        "reduce_op": nl.add,
    },
    "range_select": _range_select,
    "select_reduce": lambda: (
        {"dst": tile(8, 4), "predicate": tile(8, 4, dtype=nl.uint8), "on_true": tile(8, 4)} | {"on_false": 0.0}
    ),
    "register_move": lambda: {"dst": nisa.register_alloc(0), "src": 1},
    "register_load": lambda: {"dst": nisa.register_alloc(0), "src": tile(1, 1, dtype=nl.int32)},
    "register_store": lambda: {"dst": nl.ndarray((1, 1), nl.int32), "src": nisa.register_alloc(1)},
    "scalar_load": lambda: {"src": tile(1, 1, dtype=nl.int32)},
    "scalar_store": lambda: {
        "dst": nl.ndarray((1, 1), nl.int32),
        "value": nisa.scalar_load(tile(1, 1, dtype=nl.int32)),
    },
    "nc_find_index8": lambda: {"dst": nl.ndarray((8, 8), nl.uint32), "data": tile(8, 16), "vals": tile(8, 8)},
    "nc_match_replace8": lambda: {"dst": tile(8, 16), "data": tile(8, 16), "vals": tile(8, 8), "imm": 0.0},
    "nonzero_with_count": lambda: {"dst": nl.ndarray((128, 17), nl.int32), "src": tile(128, 16, dtype=nl.int32)},
    "topk": lambda: {
        "val_dst": nl.ndarray((16, 8), nl.bfloat16),
        "idx_dst": nl.ndarray((16, 8), nl.uint32),
        "src": tile(16, 16, dtype=nl.bfloat16),
        "n": 16,
    },
}


def _usual(name: str) -> dict[str, Any]:
    """The call that the strategies know, for an instruction that needs no other one."""
    return {key: tile(*each.shape) if isinstance(each, Tile) else each for key, each in calls()[name].items()}


CALLS |= {name: partial(_usual, name) for name in calls() if name not in CALLS}
# Instructions that came with NKI 0.7.
NEWEST = {name for name, row in names_of("nki.isa").items() if row.since == "0.7"}
# The names of all calls, as a test's parameter.
NAMES = [pytest.param(name, marks=SINCE_0_7) if name in NEWEST else name for name in CALLS]


def valid_call(name: str) -> dict[str, Any]:
    """The arguments of a call that is legal, by name."""
    found: dict[str, Any] = CALLS[name]()
    return found
