"""A legal call of each instruction whose dtypes can be tried: its tiles, and its other arguments."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from nkitools.chip.argument_types import Argument
from nkitools.chip.dtypes import DType
from nkitools.dialects.modern import isa as nisa
from nkitools.issue.instruction import Instruction
from nkitools.issue.plan import DST, SRC

nl: Any = import_module("nkitools.dialects.modern.language")  # its names are made when they are asked for


class Tile(NamedTuple):
    """A tensor of the call. ``dtype`` None: one of the data operands, whose dtype is tried."""

    shape: tuple[int, ...]
    dtype: Any = None
    memory: str = "sbuf"
    is_read: bool = True


def _tile(*shape: int, dtype: DType | None = None) -> Tile:
    return Tile(shape, dtype)


def _written(*shape: int, dtype: DType | None = None, memory: str = "sbuf") -> Tile:
    return Tile(shape, dtype, memory, is_read=False)


def _one(**arguments: Argument | Tile) -> dict[str, Any]:
    """Return an element-wise instruction of one input."""
    return {"dst": _written(8, 16), "data": _tile(8, 16), **arguments}


def _moved(**arguments: Argument | Tile) -> dict[str, Any]:
    return {"dst": _written(8, 16), "src": _tile(8, 16), **arguments}


_CALLS: dict[str, dict[str, Any]] = {
    "activation": _one(op=nl.exp),
    "activation_reduce": _one(op=nl.exp, reduce_op=nl.add, reduce_res=_written(8, 1, dtype=nl.float32)),
    "affine_select": {
        "dst": _written(8, 16),
        "pattern": [[1, 16]],
        "channel_multiplier": 1,
        "on_true_tile": _tile(8, 16),
        "on_false_value": 0.0,
    },
    "bn_aggr": {"dst": _written(8, 2, dtype=nl.float32), "data": _tile(8, 6)},
    "bn_stats": {"dst": _written(8, 6, dtype=nl.float32), "data": _tile(8, 16)},
    "dma_transpose": {"dst": _written(64, 32), "src": _tile(32, 64)},
    "dropout": _one(prob=0.5),
    "iota": {"dst": _written(8, 16), "pattern": [[1, 16]]},
    "max8": {"dst": _written(8, 8), "src": _tile(8, 16)},
    "memset": {"dst": _written(8, 16), "value": 0},
    "nc_find_index8": {"dst": _written(8, 8, dtype=nl.uint32), "data": _tile(8, 16), "vals": _tile(8, 8)},
    "nc_matmul": {
        "dst": _written(64, 32, dtype=nl.float32, memory="psum"),
        "stationary": _tile(128, 64),
        "moving": _tile(128, 32),
    },
    "nonzero_with_count": {},  # of integers alone
    "nc_stream_shuffle": {"dst": _written(32, 16), "src": _tile(32, 16), "shuffle_mask": list(range(32))},
    "nc_transpose": {"dst": _written(32, 64, memory="psum"), "data": _tile(64, 32)},
    "scalar_tensor_tensor": _one(op0=nl.multiply, operand0=1.0, op1=nl.add, operand1=_tile(8, 16, dtype=nl.float32)),
    "select_reduce": {
        "dst": _written(8, 16),
        "predicate": _tile(8, 16, dtype=nl.uint8),
        "on_true": _tile(8, 16),
        "on_false": 0.0,
    },
    "tensor_copy_predicated": _moved(predicate=_tile(8, 16, dtype=nl.uint8)),
    "tensor_partition_reduce": {"dst": _written(1, 16), "op": nl.add, "data": _tile(8, 16)},
    "tensor_reduce": {"dst": _written(8, 1), "op": nl.add, "data": _tile(8, 16), "axis": 1},
    "tensor_scalar": _one(op0=nl.multiply, operand0=1.0),
    "tensor_scalar_cumulative": _moved(op0=nl.multiply, op1=nl.add, imm0=1.0),
    "tensor_scalar_reduce": _one(
        op0=nl.multiply, operand0=1.0, reduce_op=nl.add, reduce_res=_written(8, 1, dtype=nl.float32)
    ),
    "tensor_tensor": {"dst": _written(8, 16), "data1": _tile(8, 16), "data2": _tile(8, 16), "op": nl.add},
    "tensor_tensor_scan": {
        "dst": _written(8, 16),
        "data0": _tile(8, 16),
        "data1": _tile(8, 16),
        "initial": 0.0,
        "op0": nl.multiply,
        "op1": nl.add,
    },
}
_READ = ("data", "data1", "data2", "src")


@cache
def calls() -> dict[str, dict[str, Any]]:
    """Return the calls by the names of instructions: those of the table, and those that need usual tiles alone."""
    public = {name: getattr(getattr(nisa, name), "instruction", None) for name in nisa.__all__}
    known = {name: _usual(each) for name, each in public.items() if each is not None} | _CALLS
    return {name: call for name, call in known.items() if call}


def _usual(instruction: Instruction[...]) -> dict[str, Any]:
    """Return the call of an instruction that needs a tensor to write and tensors to read; {} for other ones."""
    form = zip(instruction.form, instruction.roles, strict=True)
    needed = [(each.name, role) for each, role in form if each.default is each.empty]
    roles = {"dst": DST, **dict.fromkeys(_READ, SRC)}
    if len(needed) < 2 or any(roles.get(name) != role for name, role in needed):
        return {}
    return {name: _written(8, 16) if role == DST else _tile(8, 16) for name, role in needed}
