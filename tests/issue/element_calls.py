"""Small calls of every instruction, in the forms in which its elements are made differently, with random operands.

Each entry of `CALLS` makes the arguments from a random generator. Where elements other than those that the values show
may have made a result, ``may`` names the operands: their map is then an upper bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.strategies.calls import calls
from tests.isa.issued import Tile, tile

ALL_CHIPS = ("trn1", "trn2", "trn3")
NEWER = ("trn2", "trn3")
NEWEST = ("trn3",)


@dataclass(frozen=True)
class Call:
    """One form of a call."""

    instruction: str
    form: str
    arguments: Callable[[np.random.Generator], dict[str, Any]]
    chips: tuple[str, ...] = ALL_CHIPS
    may: frozenset[str] = frozenset()  # operands of which values decide which elements count
    alternatives: Mapping[str, Sequence[float]] = field(
        default_factory=dict
    )  # of an operand: what to try, if not random


CALLS: list[Call] = []


def call(
    instruction: str,
    form: str = "",
    chips: tuple[str, ...] = ALL_CHIPS,
    may: tuple[str, ...] = (),
    **alternatives: Sequence[float],
) -> Callable[[Callable[[np.random.Generator], dict[str, Any]]], None]:
    """Add a form of a call to the table."""

    def add(arguments: Callable[[np.random.Generator], dict[str, Any]]) -> None:
        CALLS.append(Call(instruction, form, arguments, chips, frozenset(may), alternatives))

    return add


def real(rng: np.random.Generator, *shape: int, memory: str = "sbuf", dtype: Any = nl.float32) -> Tile:
    """A tile of floats that is full."""
    return tile(rng.uniform(0.5, 2, shape).astype(np.float32), memory, dtype)


def whole(rng: np.random.Generator, *shape: int, below: int, dtype: Any) -> Tile:
    """A tile of integers from 0 on."""
    return tile(rng.integers(0, below, shape).astype(dtype.dtype), "sbuf", dtype)


# --- copies, fills, registers ----------------------------------------------------------------------------------------

call("dma_copy")(lambda r: {"dst": real(r, 3, 4, memory="shared_hbm"), "src": real(r, 3, 4)})
call("dma_copy", "other partitions")(lambda r: {"dst": real(r, 2, 6), "src": real(r, 3, 4, memory="shared_hbm")})
call("dma_compute")(lambda r: {"dst": real(r, 2, 6), "srcs": [real(r, 2, 3, 2), real(r, 2, 6)], "reduce_op": nl.add})
call("dma_transpose", "2-D")(lambda r: {"dst": real(r, 4, 32), "src": real(r, 32, 4)})
call("dma_transpose", "3-D")(lambda r: {"dst": real(r, 4, 3, 2), "src": real(r, 2, 3, 4)})
call("dma_transpose", "4-D")(lambda r: {"dst": real(r, 5, 3, 4, 2), "src": real(r, 2, 3, 4, 5, memory="shared_hbm")})
call("tensor_copy")(lambda r: {"dst": real(r, 3, 2, 2), "src": real(r, 3, 4)})
call("memset")(lambda r: {"dst": real(r, 3, 4), "value": 2.0})
call("iota")(lambda r: {"dst": whole(r, 3, 4, below=9, dtype=nl.int32), "pattern": [[2, 4]], "channel_multiplier": 3})
call("iota", "from a register")(
    lambda r: {"dst": whole(r, 3, 4, below=9, dtype=nl.int32), "pattern": [[2, 4]], "offset": nisa.register_alloc(7)}
)
call("register_move")(lambda r: {"dst": nisa.register_alloc(0), "src": nisa.register_alloc(5)})
call("register_move", "a number")(lambda r: {"dst": nisa.register_alloc(0), "src": 5})
call("register_load")(lambda r: {"dst": nisa.register_alloc(0), "src": whole(r, 1, 1, below=9, dtype=nl.int32)})
call("register_store")(lambda r: {"dst": whole(r, 1, 1, below=9, dtype=nl.int32), "src": nisa.register_alloc(5)})


# --- element by element ----------------------------------------------------------------------------------------------


def _two(r: np.random.Generator) -> dict[str, Any]:
    return {"dst": real(r, 3, 4), "data": real(r, 3, 2, 2)}


call("tensor_tensor")(
    lambda r: {"dst": real(r, 3, 4), "data1": real(r, 3, 4), "data2": real(r, 3, 2, 2), "op": nl.multiply}
)
call("tensor_scalar")(lambda r: _two(r) | {"op0": nl.multiply, "operand0": 2.0})
call("tensor_scalar", "vectors")(
    lambda r: _two(r) | {"op0": nl.multiply, "operand0": real(r, 3, 1), "op1": nl.add, "operand1": real(r, 3, 1)}
)
call("reciprocal")(_two)
call("scalar_tensor_tensor")(
    lambda r: _two(r) | {"op0": nl.multiply, "operand0": real(r, 3, 1), "op1": nl.add, "operand1": real(r, 3, 4)}
)
for command in ("reset_reduce", "reduce", "load_reduce"):
    call("tensor_scalar_reduce", command)(
        lambda r, command=command: (
            _two(r)
            | {"op0": nl.multiply, "operand0": real(r, 3, 1), "reduce_op": nl.add, "reduce_res": real(r, 3, 1)}
            | {"reduce_cmd": nisa.reduce_cmd[command]}
            | ({"reduce_init": real(r, 3, 1)} if command == "load_reduce" else {})
        )
    )
    call("tensor_scalar_cumulative", command)(
        lambda r, command=command: (
            {"dst": real(r, 3, 4), "src": real(r, 3, 2, 2), "op0": nl.multiply, "op1": nl.add, "imm0": real(r, 3, 1)}
            | {"reduce_cmd": nisa.reduce_cmd[command]}
            | ({"imm1": real(r, 3, 1)} if command == "load_reduce" else {})
        )
    )
    call("exponential", command, chips=NEWEST)(
        lambda r, command=command: (
            {"dst": real(r, 3, 4), "src": real(r, 3, 2, 2), "max_value": real(r, 3, 1), "reduce_res": real(r, 3, 1)}
            | {"reduce_cmd": nisa.reduce_cmd[command]}
            | ({"reduce_init": real(r, 3, 1)} if command == "load_reduce" else {})
        )
    )
call("exponential", "idle", chips=NEWEST)(lambda r: {"dst": real(r, 3, 4), "src": real(r, 3, 4), "max_value": 1.0})
call("tensor_tensor_scan")(
    lambda r: (
        {"dst": real(r, 3, 4), "data0": real(r, 3, 4), "data1": real(r, 3, 2, 2), "initial": real(r, 3, 1)}
        | {"op0": nl.multiply, "op1": nl.add}
    )
)
call("activation")(lambda r: _two(r) | {"op": nl.exp, "bias": real(r, 3, 1), "scale": real(r, 3, 1)})
for command in ("idle", "reset", "reduce", "reset_reduce"):
    call("activation", command)(
        lambda r, command=command: (
            _two(r)
            | {"op": nl.exp, "bias": real(r, 3, 1), "scale": real(r, 3, 1), "reduce_res": real(r, 3, 1)}
            | {"reduce_op": nl.add, "reduce_cmd": nisa.reduce_cmd[command]}
        )
    )
    call("activate2", command, chips=NEWEST)(
        lambda r, command=command: (
            _two(r)
            | {"op": nl.exp, "imm0": real(r, 3, 1), "imm1": real(r, 3, 1), "op0": nl.multiply, "op1": nl.add}
            | {"reduce_op": nl.add, "reduce_res": real(r, 3, 1), "reduce_cmd": nisa.reduce_cmd[command]}
        )
    )
call("activate2", "prelu", chips=NEWEST)(
    lambda r: _two(r) | {"op": nl.prelu, "imm0": 1.0, "imm1": real(r, 3, 1), "op0": nl.multiply, "op1": nl.subtract}
)
call("activation_reduce")(
    lambda r: (
        _two(r) | {"op": nl.exp, "reduce_op": nl.add, "reduce_res": real(r, 3, 1), "bias": real(r, 3, 1), "scale": 2.0}
    )
)
call("dropout", prob=(0.0, 1.0))(
    lambda r: {"dst": real(r, 3, 4), "data": real(r, 3, 4), "prob": tile(r.uniform(0.1, 0.9, (3, 1)).astype("f4"))}
)


# --- matrices --------------------------------------------------------------------------------------------------------


def _matmul(r: np.random.Generator, accumulate: bool | None) -> dict[str, Any]:
    dst = real(r, 3, 2, memory="psum")
    return {"dst": dst, "stationary": real(r, 4, 3), "moving": real(r, 4, 2), "accumulate": accumulate}


call("nc_matmul")(lambda r: _matmul(r, None))
call("nc_matmul", "adds", chips=NEWEST)(lambda r: _matmul(r, True))
call("nc_matmul", "overwrites")(lambda r: _matmul(r, False))
call("nc_matmul", "double row", chips=NEWER)(
    lambda r: {
        "dst": real(r, 3, 2, memory="psum"),
        "stationary": real(r, 4, 2, 3, dtype=nl.float8_e4m3),
        "moving": real(r, 4, 2, 2, dtype=nl.float8_e4m3),
        "perf_mode": nisa.matmul_perf_mode.double_row,
        "accumulate": False,
    }
)
call("nc_matmul", "transposes", chips=NEWER, moving=())(
    lambda r: {
        "dst": real(r, 3, 4, memory="psum"),
        "stationary": real(r, 4, 3),
        "moving": tile(np.eye(4, dtype=np.float32)[r.permutation(4)]),
        "is_transpose": True,
        "accumulate": False,
    }
)
call("nc_transpose", "Vector Engine")(lambda r: {"dst": real(r, 4, 3), "data": real(r, 3, 2, 2)})
call("nc_transpose", "Tensor Engine", data=(7.0, np.nan))(
    lambda r: {"dst": real(r, 4, 3, memory="psum"), "data": real(r, 3, 4), "engine": nisa.engine.tensor}
)


def _packed(r: np.random.Generator, *shape: int) -> Tile:
    codes = r.integers(1, 0x70, (*shape, 4)).astype(np.uint8)
    return tile(codes.view("<u4").reshape(shape), "sbuf", nl.float8_e4m3fn_x4)


def _scales(r: np.random.Generator, *shape: int) -> Tile:
    return tile(r.integers(125, 130, shape).astype(np.uint8), "sbuf", nl.uint8)


def _matmul_mx(r: np.random.Generator) -> dict[str, Any]:
    operands = {"dst": real(r, 2, 3, memory="psum"), "stationary": _packed(r, 32, 2), "moving": _packed(r, 32, 3)}
    return operands | {"stationary_scale": _scales(r, 32, 2), "moving_scale": _scales(r, 4, 3)}


call("nc_matmul_mx", chips=NEWEST)(_matmul_mx)
call("nc_matmul_mx", "overwrites", chips=NEWEST)(lambda r: _matmul_mx(r) | {"accumulate": False})
call("quantize_mx", chips=NEWEST, src=(64.0, 1.0))(
    lambda r: {"dst": _packed(r, 32, 2), "src": real(r, 32, 8, dtype=nl.bfloat16), "dst_scale": _scales(r, 6, 2)}
)


# --- reductions and searches -----------------------------------------------------------------------------------------

call("tensor_reduce")(lambda r: {"dst": real(r, 3, 2), "op": nl.add, "data": real(r, 3, 2, 4), "axis": 2})
call("tensor_reduce", "two axes")(
    lambda r: {"dst": real(r, 3, 1, 1), "op": nl.add, "data": real(r, 3, 2, 4), "axis": (1, 2), "keepdims": True}
)
call("tensor_reduce", "maximum", data=(9.0,))(
    lambda r: {"dst": real(r, 3, 2), "op": nl.maximum, "data": real(r, 3, 2, 4), "axis": 2, "negate": True}
)
call("tensor_partition_reduce")(lambda r: {"dst": real(r, 1, 2, 3), "op": nl.add, "data": real(r, 4, 2, 3)})
call("bn_stats")(lambda r: {"dst": real(r, 3, 6), "data": real(r, 3, 7)})
call("bn_aggr", may=("data",))(lambda r: {"dst": real(r, 3, 2), "data": real(r, 3, 6)})
call("max8", src=(9.0, 0.0))(lambda r: {"dst": real(r, 2, 8), "src": real(r, 2, 5, 2)})


def _searched(r: np.random.Generator, **more: Any) -> dict[str, Any]:
    vals = whole(r, 2, 8, below=4, dtype=nl.float32)
    return {"data": whole(r, 2, 3, 4, below=4, dtype=nl.float32), "vals": vals, **more}


call("nc_find_index8", may=("data",), vals=range(5), data=range(5))(
    lambda r: _searched(r, dst=whole(r, 2, 8, below=9, dtype=nl.uint32))
)
call("nc_match_replace8", may=("vals", "data"), vals=range(5), data=range(5))(
    lambda r: _searched(r, dst=real(r, 2, 12), imm=-1.0, dst_idx=whole(r, 2, 8, below=9, dtype=nl.uint32))
)
call("topk", src=(9.0, 0.0))(
    lambda r: {
        "val_dst": real(r, 32, 8, dtype=nl.bfloat16),
        "idx_dst": whole(r, 32, 8, below=9, dtype=nl.uint32),
        "src": real(r, 32, 2, dtype=nl.bfloat16),
        "n": 20,
        "sorted": True,  # an element has no fixed place among results in no order
    }
)
call("nonzero_with_count", chips=NEWER, src=(0, 1))(
    lambda r: {"dst": whole(r, 18, 3, below=99, dtype=nl.int32), "src": whole(r, 18, 2, below=2, dtype=nl.int32)}
)
call("sequence_bounds", may=("segment_ids",), segment_ids=(0.0, 1.0, 2.0, 3.0))(
    lambda r: {"dst": real(r, 1, 2, 6), "segment_ids": whole(r, 1, 6, below=3, dtype=nl.float32)}
)


# --- choices ---------------------------------------------------------------------------------------------------------

call("affine_select", offset=(-9, 9))(
    lambda r: {
        "dst": real(r, 3, 4),
        "pattern": [[1, 4]],
        "channel_multiplier": -1,
        "on_true_tile": real(r, 3, 2, 2),
        "on_false_value": 0.0,
        "cmp_op": nl.greater_equal,
        "offset": nisa.register_alloc(int(r.integers(-1, 3))),
    }
)


def _bound(r: np.random.Generator, below: int) -> Tile:
    return tile(r.integers(0, below, (3, 1)).astype(np.float32))


for command in ("idle", "reset", "reduce", "reset_reduce"):
    call("range_select", command, chips=NEWER, on_true_tile=(-9.0, 9.0), bound0=range(5), bound1=range(5))(
        lambda r, command=command: (
            {"dst": real(r, 3, 4), "on_true_tile": real(r, 3, 2, 2), "comp_op0": nl.greater_equal, "comp_op1": nl.less}
            | {"bound0": _bound(r, 3), "bound1": _bound(r, 5), "reduce_res": real(r, 3, 1)}
            | {"reduce_cmd": nisa.reduce_cmd[command]}
        )
    )
for command in ("idle", "reduce", "reset_reduce"):
    call("select_reduce", command, predicate=(0, 1), on_true=(0.0, 9.0), on_false=(0.0, 9.0))(
        lambda r, command=command: (
            {"dst": real(r, 3, 4), "predicate": whole(r, 3, 4, below=2, dtype=nl.uint8), "on_true": real(r, 3, 2, 2)}
            | {"on_false": real(r, 3, 1), "reduce_res": real(r, 3, 1), "reduce_cmd": nisa.reduce_cmd[command]}
        )
    )
call("select_reduce", "no maximum", predicate=(0, 1))(
    lambda r: {
        "dst": real(r, 3, 4),
        "predicate": whole(r, 3, 2, 2, below=2, dtype=nl.uint8),
        "on_true": real(r, 3, 4),
        "on_false": 0.25,
    }
)
for source in ("tile", "number"):
    call("tensor_copy_predicated", source, predicate=(0, 1))(
        lambda r, source=source: {
            "dst": real(r, 3, 4),
            "src": real(r, 3, 2, 2) if source == "tile" else 3.0,
            "predicate": whole(r, 3, 4, below=2, dtype=nl.uint8),
        }
    )


# --- by index --------------------------------------------------------------------------------------------------------

call("local_gather", index=range(5))(
    lambda r: {
        "dst": real(r, 32, 10),
        "src_buffer": real(r, 32, 6),
        "index": whole(r, 32, 1, below=5, dtype=nl.uint16),
        "num_elem_per_idx": 2,
        "num_valid_indices": 5,
    }
)
call("nc_n_gather", indices=range(4))(
    lambda r: {"dst": real(r, 3, 5), "data": real(r, 3, 2, 2), "indices": whole(r, 3, 5, below=4, dtype=nl.uint32)}
)
call("nc_stream_shuffle")(
    lambda r: {"dst": real(r, 34, 2), "src": real(r, 34, 2), "shuffle_mask": [1, 0, 255, 1, 255, *([0] * 27)]}
)
call("nc_stream_shuffle", "a partition for all")(
    lambda r: {"dst": real(r, 5, 2), "src": real(r, 1, 2), "shuffle_mask": [0] * 32}
)


# --- random numbers --------------------------------------------------------------------------------------------------

call("rng")(lambda r: {"dst": whole(r, 3, 4, below=9, dtype=nl.uint32)})
call("rng", "GpSimd Engine", chips=NEWER)(
    lambda r: {"dst": whole(r, 3, 4, below=9, dtype=nl.uint32), "engine": nisa.engine.gpsimd}
)
call("rand2", chips=NEWEST, min=(0.25, 0.125))(
    lambda r: {"dst": real(r, 3, 4), "min": tile(np.zeros((3, 1), "f4")), "max": real(r, 3, 1)}
)
call("set_rng_seed")(lambda r: {"src_seeds": whole(r, 1, 1, below=99, dtype=nl.uint32)})
call("rand_set_state", chips=NEWER)(lambda r: {"src_seeds": whole(r, 3, 6, below=2**31, dtype=nl.uint32)})
call("rand_set_state", "Vector Engine", chips=NEWEST)(
    lambda r: {"src_seeds": whole(r, 3, 24, below=2**31, dtype=nl.uint32), "engine": nisa.engine.vector}
)
call("rand_get_state", chips=NEWER)(lambda r: {"dst": whole(r, 3, 6, below=9, dtype=nl.uint32)})


# --- instructions that need no other tiles than usual ones ------------------------------------------------------------

for name in calls().keys() - {each.instruction for each in CALLS}:
    call(name)(lambda r, name=name: {key: real(r, *each.shape[:1], 4) for key, each in calls()[name].items()})
