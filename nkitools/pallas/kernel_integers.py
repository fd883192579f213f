"""Runs the integers of Pallas kernels alone, and counts their work on the way.

Grid indices, prefetched scalars and loop counters are computed, so that branches are taken, loops turned and blocks
moved as in a run. Arrays of the vector memory have no values: an operation on them counts by its shape.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from nkitools.pallas import jax_internals
from nkitools.pallas.calls import Call, Operand, equations
from nkitools.pallas.counted_work import Work
from nkitools.pallas.static import bit_width_in_memory
from nkitools.pallas.whole_function import OVER_MESH, WholeFunction

_MOST_TURNS = 1024  # of a grid or a loop; the work of a larger one is that of its first turns, scaled
_RUN = ("cond", "while", "scan", "run_scoped")
_INNER = ("call_jaxpr", "jaxpr", "fun_jaxpr")

_INTEGERS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "max": max, "min": min, "neg": operator.neg,
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "and": operator.and_, "or": operator.or_, "xor": operator.xor, "not": lambda x: not x if x in (0, 1) else ~x,
    "rem": lambda x, y: int(math.fmod(x, y)) if y else None, "sign": lambda x: (x > 0) - (x < 0),
    "div": lambda x, y: int(x / y) if y else None,
    "select_n": lambda which, *cases: cases[int(which)], "clamp": lambda low, x, high: min(max(x, low), high),
    "convert_element_type": lambda x: x, "multiple_of": lambda x: x, "squeeze": lambda x: x, "reshape": lambda x: x,
    "stop_gradient": lambda x: x, "shift_right_arithmetic": operator.rshift, "shift_left": operator.lshift,
}  # fmt: skip


def work_of(call: Call, known: Mapping[int, Sequence[Any]]) -> Work:
    """Return the work of a call, of kernels over a mesh of cores that of a core.

    ``known``: by the identity of a call's parameters the values of its scalar operands, None for those not known.
    """
    if not isinstance(call, WholeFunction) or call.traced is None:
        return _Run().of_grid(call, known.get(id(call.params), []))
    total = Work()
    for equation in equations(call.traced.jaxpr):
        if equation.primitive.name in OVER_MESH:
            kernel = jax_internals.first_kernel(equation.params)
            total.add(_Run().of_kernel(kernel, known.get(id(equation.params), [])), 1)
    return total


class _Block:
    """A jaxpr that is run for its integers: its steps that need values, and the work of one turn of the rest."""

    def __init__(self, jaxpr: Any, run: _Run) -> None:
        self.jaxpr, self.own, self.turns = jaxpr, Work(), 0.0
        self.outputs = [_number(var) for var in jaxpr.outvars]
        self.steps: list[tuple[Any, list[Any], Callable[[Any, list[Any]], Any]]] = []
        for equation in jaxpr.eqns:
            step = run.step(equation)
            if step is not None:
                self.steps.append((equation, [_number(var) for var in equation.invars], step))
            else:
                self.own.count(equation)
        self._leave_out_unread()
        names = {equation.primitive.name for equation, *_ in self.steps}
        self.is_step = "cond" in names and _computes(jaxpr)
        self.is_plain = names.isdisjoint(_RUN) and not any(_inner(equation) for equation, *_ in self.steps)

    def _leave_out_unread(self) -> None:
        """Leave out the integers that decide nothing: most are the places of copies."""
        read = {id(var) for var in self.jaxpr.outvars}
        kept = []
        for equation, numbers, step in reversed(self.steps):
            is_alone = equation.primitive.name not in _RUN and not _inner(equation)
            if (is_alone and read.isdisjoint(map(id, equation.outvars))) or not _does_anything(equation):
                continue
            read.update(map(id, equation.invars))
            kept.append((equation, numbers, step))
        self.steps = kept[::-1]


def _inner(equation: Any) -> Any:
    """Return the jaxpr that an equation evaluates in its place; None if it has none."""
    found = (equation.params.get(each) for each in _INNER)
    return next((each for each in found if hasattr(getattr(each, "jaxpr", each), "eqns")), None)


def _computes(jaxpr: Any) -> bool:
    """Return whether a jaxpr has an operation on arrays."""
    return any(getattr(var.aval, "shape", ()) for each in equations(jaxpr) for var in each.outvars)


def _does_anything(equation: Any) -> bool:
    is_empty = [not each.jaxpr.eqns for each in equation.params.get("branches", ())]
    return not is_empty or not all(is_empty) or bool(equation.outvars)


def _number(atom: Any) -> Any:
    """Return the number that is written in a jaxpr; None for a variable."""
    value: Any = getattr(atom, "val", None)
    return value.item() if hasattr(value, "item") and not np.ndim(value) else value


class _Run:
    """Runs the integers of a kernel. A value that is not known is None; a branch on it is taken as true."""

    def __init__(self) -> None:
        self._point: tuple[int, ...] = ()
        self._grid: tuple[int, ...] = ()
        self._blocks: dict[int, _Block] = {}
        self._turns = 1.0

    def of_kernel(self, jaxpr: Any, values: Sequence[Any]) -> Work:
        """Return the work of a kernel that copies its operands itself."""
        jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
        self.run(jaxpr, [*values, *[None] * len(jaxpr.invars)], 1)
        return self._total(1, 1)

    def of_grid(self, call: Call, values: Sequence[Any]) -> Work:
        """Return the work of all points of a call's grid."""
        mapping, given = call.params["grid_mapping"], [*values, *[None] * (len(call.avals) - len(values))]
        bounds = iter(given[: mapping.num_dynamic_grid_bounds])
        self._grid = tuple(int(next(bounds) or 1) if size is None else size for size in call.grid)
        args = [*given[mapping.num_dynamic_grid_bounds :], *[None] * len(call.jaxpr.invars)]
        scalars = args[: mapping.num_index_operands]
        blocks = [each for each in call.operands if each.memory not in ("smem", "any", "hbm", "semaphore")]
        kept = [axis for axis in range(len(self._grid)) if axis not in mapping.vmapped_dims]
        last: list[Any] = [None] * len(blocks)
        moved = Work()
        sample = _sample(self._grid)
        for point in sample:
            self._point = tuple(point[axis] for axis in kept)
            for at, operand in enumerate(blocks):
                place = self._places(operand, [*point, *scalars])
                if place != last[at] or None in place:
                    moved.add(Work(moved=_block_bytes(operand)), 1)
                last[at] = place
            self.run(call.jaxpr, args, 1)
        return self._total(len(sample), math.prod(self._grid), moved)

    def _total(self, sampled: int, points: int, moved: Work | None = None) -> Work:
        """Return the work of all points from that of some."""
        total = Work()
        for each, times in [(moved or Work(), 1.0), *((block.own, block.turns) for block in self._blocks.values())]:
            total.add(each, times * points / max(sampled, 1))
        total.steps += points
        return total

    def _places(self, operand: Operand, args: Sequence[Any]) -> tuple[Any, ...]:
        closed = operand.mapping.index_map_jaxpr
        found = self.run(closed.jaxpr, args, 0, closed.consts)
        return tuple(None if each is None else int(each) for each in found)

    def run(self, jaxpr: Any, args: Sequence[Any], turns: float, consts: Sequence[Any] = ()) -> list[Any]:
        """Run a jaxpr once for its integers, count its work so many times, and return its outputs."""
        block = self._blocks.get(id(jaxpr))
        if block is None:
            block = self._blocks[id(jaxpr)] = _Block(jaxpr, self)
        block.turns += turns
        known: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=False))
        known.update(zip(jaxpr.invars, args, strict=False))
        self._turns = turns
        for equation, numbers, step in block.steps:
            values = [known.get(var) if at is None else at for at, var in zip(numbers, equation.invars, strict=True)]
            self._turns = turns
            results = step(equation, values)
            known.update(zip(equation.outvars, results, strict=False))
        return [known.get(var) if at is None else at for at, var in zip(block.outputs, jaxpr.outvars, strict=True)]

    def step(self, equation: Any) -> Callable[[Any, list[Any]], Any] | None:
        """Return how an equation is run for its integers; None if it has none, so that its work alone counts."""
        name = equation.primitive.name
        if name in (*_RUN, "program_id", "num_programs", "axis_index"):
            return getattr(self, f"_{name}")  # type: ignore[no-any-return]
        if _inner(equation) is not None:
            return self._inner
        if name == "dma_start":
            return None
        if all(not getattr(var.aval, "shape", (1,)) for var in equation.outvars):
            return self._read if name in ("get", "masked_load") else self._scalar
        return None

    def _program_id(self, equation: Any, values: list[Any]) -> list[Any]:
        return [int(self._point[equation.params["axis"]])]

    def _axis_index(self, equation: Any, values: list[Any]) -> list[Any]:
        return [0]  # the first core of a mesh

    def _num_programs(self, equation: Any, values: list[Any]) -> list[Any]:
        return [int(self._grid[equation.params["axis"]])]

    def _scalar(self, equation: Any, values: list[Any]) -> list[Any]:
        if None in values or len(equation.outvars) != 1:
            return [None] * len(equation.outvars)
        operation = _INTEGERS.get(equation.primitive.name)
        return [None if operation is None else operation(*values)]

    def _read(self, equation: Any, values: list[Any]) -> list[Any]:
        if values[0] is None or equation.primitive.name != "get":
            return [None]
        parts = equation.params["tree"].unflatten(values[1:])
        if len(parts) != 1 or any(part is None or hasattr(part, "stride") for part in parts[0].indices):
            return [None]
        array = np.asarray(values[0])
        index = tuple(
            min(max(int(part), 0), size - 1) for part, size in zip(parts[0].indices, array.shape, strict=True)
        )
        return [array[index].item()]

    def _inner(self, equation: Any, values: list[Any]) -> list[Any]:
        inner = _inner(equation)
        return self.run(getattr(inner, "jaxpr", inner), values, self._turns, getattr(inner, "consts", ()))

    def _run_scoped(self, equation: Any, values: list[Any]) -> list[Any]:
        inner = equation.params["jaxpr"]
        jaxpr = getattr(inner, "jaxpr", inner)
        return self.run(jaxpr, [None] * len(jaxpr.invars), self._turns, values)

    def _cond(self, equation: Any, values: list[Any]) -> list[Any]:
        branches = equation.params["branches"]
        taken = branches[-1 if values[0] is None else min(max(int(values[0]), 0), len(branches) - 1)]
        return self.run(taken.jaxpr, values[1:], self._turns, taken.consts)

    def _while(self, equation: Any, values: list[Any]) -> list[Any]:
        params, turns = equation.params, self._turns
        first, second = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
        condition, body, state = params["cond_jaxpr"], params["body_jaxpr"], values[second:]
        done = 0
        before = self._counted()
        while done < _MOST_TURNS:
            (more,) = self.run(condition.jaxpr, [*values[:first], *state], 0, condition.consts)
            if (more is None and done) or (more is not None and not more):
                break
            state = self.run(body.jaxpr, [*values[first:second], *state], turns, body.consts)
            done += 1
            self._turned(body)
        total = self._length(condition, values[:first], values[second:], state, done)
        self._scale(before, total / max(done, 1))
        return list(state)

    def _length(self, condition: Any, consts: list[Any], start: list[Any], state: list[Any], done: int) -> float:
        """Return the turns of a loop that counts one of its numbers up to another: known once its first turns ran."""
        if done < _MOST_TURNS:
            return done
        for equation in condition.jaxpr.eqns:
            if equation.primitive.name == "lt":
                known = dict(zip(condition.jaxpr.invars, [*consts, *start], strict=False))
                low, high = (_number(var) if hasattr(var, "val") else known.get(var) for var in equation.invars)
                if low is not None and high is not None:
                    return float(high - low)
        return done

    def _scan(self, equation: Any, values: list[Any]) -> list[Any]:
        params, turns = equation.params, self._turns
        consts, carried = jax_internals.scan_counts(params)
        body, length = params["jaxpr"], params["length"]
        state, moving = values[consts : consts + carried], values[consts + carried :]
        before, done = self._counted(), 0
        for turn in range(min(length, _MOST_TURNS)):
            at = length - 1 - turn if params["reverse"] else turn
            each = [None if value is None else value[at] for value in moving]
            results = self.run(body.jaxpr, [*values[:consts], *state, *each], turns, body.consts)
            state = results[:carried]
            done += 1
            if self._turned(body).is_plain:
                break
        self._scale(before, length / max(done, 1))
        if done < length:
            state = [None] * carried
        return [*state, *[None] * (len(equation.outvars) - carried)]

    def _turned(self, body: Any) -> _Block:
        """Return what was run of a loop; its turns are steps if they branch, and compute more than places of copies."""
        block = self._blocks[id(body.jaxpr)]
        block.own.steps = 1 if block.is_step else 0
        return block

    def _counted(self) -> dict[int, float]:
        return {key: block.turns for key, block in self._blocks.items()}

    def _scale(self, before: dict[int, float], factor: float) -> None:
        """Count what was run since ``before`` more often."""
        if factor != 1:
            for key, block in self._blocks.items():
                block.turns += (block.turns - before.get(key, 0)) * (factor - 1)


def _block_bytes(operand: Operand) -> int:
    return math.prod(operand.block_sizes) * bit_width_in_memory(operand.dtype) // 8


def _sample(grid: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the points of a grid, of a large one the first that are whole in its inner dimensions."""
    left, sizes = _MOST_TURNS, []
    for size in reversed(grid):
        sizes.append(max(min(size, left), 1))
        left //= sizes[-1]
    return list(np.ndindex(*reversed(sizes)))
