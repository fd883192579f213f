"""The legacy dialect against the modern one: the same instructions of both, on the same inputs."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np

import nkitools
from tests.differing_runs import bits
from tests.fuzz import against_oracle
from tests.fuzz.against_oracle import names_of as names_of
from tests.fuzz.kernel import outputs_of, simulated
from tests.oracle.arithmetic import BITWISE, FUNCTIONS, OPERATORS, SMOOTH, WORDS
from tests.oracle.forms import is_plain, places
from tests.oracle.programs import Program, input_of, states_of
from tests.oracle.programs import program_of as any_program
from tests.oracle.state import LIMITS, Unfit, brought
from tests.oracle.steps import do

_OPERATORS = ("op", "op0", "op1", "reduce_op", "comp_op0", "comp_op1")
_NAMES = {name: getattr(nl, name) for name in (*OPERATORS, *BITWISE, *FUNCTIONS, *SMOOTH)}
# Those that return what the modern one writes to ``dst``, by the same arguments.
RETURNING = (
    "tensor_copy", "tensor_tensor", "tensor_scalar", "scalar_tensor_tensor", "activation", "reciprocal",
    "tensor_reduce", "tensor_tensor_scan", "tensor_scalar_reduce", "tensor_partition_reduce", "activation_reduce",
    "range_select", "max8", "nc_find_index8", "nc_match_replace8", "bn_stats", "bn_aggr", "local_gather",
    "sequence_bounds", "nc_transpose", "dropout",
)  # fmt: skip
_WITHOUT_DTYPE = ("local_gather", "nc_transpose")
_DTYPES = tuple(name for name in LIMITS if name != "float8_e4m3fn")
_COMPARED = {
    "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt, "less_equal": operator.le,
    "greater": operator.gt, "greater_equal": operator.ge,
}  # fmt: skip
_IN_PLACE = ("tensor_copy_predicated", "select_reduce", "nc_stream_shuffle")


def _memset(issue: _Issue) -> Any:
    dst = issue.place("dst")
    return nisa.memset(dst.shape, issue.step["value"], dst.dtype)


def _nc_matmul(issue: _Issue) -> Any:
    moving = issue["moving"]
    total = nl.zeros((issue.place("dst").shape[0], *moving.shape[1:]), dtype=nl.float32, buffer=nl.psum)
    for _ in range(len(issue.step["accumulate"])):
        total += nisa.nc_matmul(issue["stationary"], moving)
    return total


def _positions(issue: _Issue, data: Any) -> Any:
    rows, *axes = _axes(data.shape)
    ((stride, _),) = issue.step["pattern"]
    columns = sum(math.prod(data.shape[dim + 2 :]) * axis for dim, axis in enumerate(axes))
    return issue.step["offset"] + issue.step["channel_multiplier"] * rows + stride * columns


def _affine_select(issue: _Issue) -> Any:
    data = issue["on_true_tile"]
    predicate = _COMPARED[issue.step["cmp_op"]](_positions(issue, data), 0)
    return nisa.affine_select(predicate, data, issue.step["on_false_value"], dtype=issue.place("dst").dtype)


OWN: dict[str, Callable[[_Issue], Any]] = {"memset": _memset, "nc_matmul": _nc_matmul, "affine_select": _affine_select}
INSTRUCTIONS = (*RETURNING, *_IN_PLACE, *OWN)


def _view_of(tile: Any, part: dict[str, Any]) -> Any:
    """Return a view: slices, or indices that are affine in one `nl.arange` a dimension."""
    top, bottom = part["rows"]
    if is_plain(part):
        return tile[top:bottom, slice(*part["columns"])]
    columns = places(part, tile.shape[1])
    rows, *axes = _axes((bottom - top, *columns.shape))
    index = int(columns.flat[0])
    for dim, axis in enumerate(axes):
        second = columns.take(min(1, columns.shape[dim] - 1), axis=dim).flat[0]
        index = index + int(second - columns.flat[0]) * axis
    return tile[top + rows, index]


def _axes(shape: Sequence[int]) -> list[Any]:
    """Return the indices of each dimension, which broadcast."""
    return [nl.arange(size)[tuple(slice(None) if at == dim else None for at in range(len(shape)))]
            for dim, size in enumerate(shape)]  # fmt: skip


class _Issue:
    """A step in the legacy dialect: its operands as tiles."""

    def __init__(self, step: dict[str, Any], tiles: dict[str, Any], arrays: dict[str, Any]) -> None:
        self.step, self.tiles, self.arrays = step, tiles, arrays
        self.results: dict[str, Any] = {}

    def __getitem__(self, key: str) -> Any:
        part = self.step[key]
        if not isinstance(part, dict):
            return part
        return nl.load(self.arrays[key]) if "array" in part else self.place(key)

    def place(self, key: str) -> Any:
        """Return a view of a tile, or a new one."""
        part = self.step[key]
        if "tile" in part:
            return _view_of(self.tiles[part["tile"]], part)
        if part["name"] not in self.results:
            self.results[part["name"]] = nl.ndarray(tuple(part["shape"]), dtype=getattr(nl, part["new"]))
        return self.results[part["name"]]

    def run(self) -> None:
        """Issue it."""
        name = self.step["instruction"]
        if name in OWN:
            self._put(OWN[name](self))
            return
        left_out = ("instruction", "dst", *(("reduce_cmd",) if name == "tensor_scalar_reduce" else ()))
        fields = {key: self._argument(key) for key in self.step if key not in left_out}
        if name in _IN_PLACE:
            getattr(nisa, name)(dst=self.place("dst"), **fields)
            return
        dst = self.place("dst")
        if name not in _WITHOUT_DTYPE:
            fields["dtype"] = dst.dtype
        found = getattr(nisa, name)(**fields)
        self._put(found)

    def _put(self, found: Any) -> None:
        dst = self.place("dst")
        dst[...] = found.reshape(dst.shape) if found.shape != dst.shape else found

    def _argument(self, key: str) -> Any:
        part = self.step[key]
        if key in _OPERATORS:
            return _NAMES[part]
        if key == "reduce_cmd":
            return getattr(nisa.reduce_cmd, part)
        if key == "engine":
            return getattr(nisa, f"{part}_engine")
        return self.place(key) if key in ("reduce_res", "dst_idx") else self[key]


def program_of(seed: int) -> Program:
    """Return a program of what both dialects have, for one core."""
    program = any_program(seed, INSTRUCTIONS, ["0.6"], _DTYPES) | {"cores": 1, "ranks": 1}
    states = states_of(program)
    kept = []
    for step in program["steps"]:
        if _is_of_both(step, program):
            tried = [state.copied() for state in states]
            try:
                do(tried, step)
            except Unfit:
                continue
            states = tried
            kept.append(step)
    return {**program, "steps": kept}


def _is_of_both(step: dict[str, Any], program: Program) -> bool:
    """Return whether the legacy dialect has this form: neither commands nor dtypes and operators of later releases."""
    command = step.get("reduce_cmd", "reset_reduce")
    if step["instruction"] == "tensor_scalar_reduce":
        return bool(command == "reset_reduce")
    if step["instruction"] == "affine_select":
        views = [program["tiles"][step[key]["tile"]]["dtype"] for key in ("dst", "on_true_tile")]
        return step["cmp_op"] != "not_equal" and len(step["pattern"]) == 1 and not WORDS & set(views)
    return command != "load_reduce" and False not in step.get("accumulate", [None])


def smaller(program: Program) -> Iterator[Program]:
    """Yield programs with less."""
    return against_oracle.smaller(program)


def inputs_of(program: Program) -> list[Any]:
    """Return the arguments of the kernel of a program."""
    arrays = (brought(part) for step in program["steps"] for part in step.values() if _is_array(part))
    return [*(input_of(tile) for tile in program["tiles"].values()), *arrays]


def disagreement(program: Program) -> str:
    """Return which result differs."""
    modern = simulated(program)
    legacy = nkitools.simulate(nki.jit(kernel_of(program)), *inputs_of(program), chip=program["chip"], rules="report")
    for run in (modern, legacy):
        errors = [each for each in run.findings if each.severity == "error"]
        if errors:
            return f"{'modern' if run is modern else 'legacy'}: {errors[0].rule}: {errors[0].message}"
    wanted = outputs_of(program, modern, 0)
    found = legacy.outputs if isinstance(legacy.outputs, tuple) else (legacy.outputs,)
    for (name, one), other in zip(wanted.items(), found, strict=True):
        if bits(one) != bits(other):
            return f"{name}: {np.argwhere(one != other)[:3].tolist()} differ"
    return ""


def _is_array(part: Any) -> bool:
    return isinstance(part, dict) and "array" in part


def kernel_of(program: Program) -> Any:
    """Return a program as a legacy kernel."""
    names = list(program["tiles"])

    def kernel(*arguments: Any) -> Any:
        given, tiles, made = iter(arguments), {}, {}
        for name in names:
            argument = next(given)
            tiles[name] = nl.ndarray(argument.shape, dtype=argument.dtype, buffer=nl.sbuf)
            tiles[name][...] = nl.load(argument)
        for step in program["steps"]:
            issue = _Issue(step, tiles, {key: next(given) for key, part in step.items() if _is_array(part)})
            issue.run()
            for part in step.values():
                if isinstance(part, dict) and "new" in part:
                    made[part["name"]] = issue.results[part["name"]]
        outputs = []
        for tile in (*tiles.values(), *made.values()):
            outputs.append(nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm))
            nl.store(outputs[-1], tile)
        return tuple(outputs)

    return kernel
