"""Changes of index maps that make a wrong kernel right: two grid indices exchanged, or one in a constant's place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from nkitools.pallas.calls import Call, Operand, array_bytes, call_of, compiling_for, points
from nkitools.pallas.chips import Chip
from nkitools.pallas.imports import jax_module
from nkitools.pallas.interpret import interpreted
from nkitools.pallas.jax_types import Argument

_MOST_CHANGES = 24  # each takes a compilation for the CPU, half a second
_MOST_POINTS = 1024
_MOST_BYTES = 64 << 20


@dataclass(frozen=True, eq=False)
class Repair:
    """A change of the index map of an operand, in words."""

    operand: Operand
    text: str


def repair_of(
    call: Call, fn: Callable[[], Argument], chip: Chip, is_right: Callable[[Argument], bool]
) -> Repair | None:
    """Return the first change of an index map of ``call`` after which ``fn()`` ``is_right`` in plain interpretation.

    None if there is none, and for a call that is too large to run many times.
    """
    changes = list(islice(_changes(call), _MOST_CHANGES))
    if not changes or points(call) > _MOST_POINTS or array_bytes(call) > _MOST_BYTES:
        return None
    jax, core = jax_module(), jax_module("jax.core")
    with compiling_for(chip), interpreted(True):
        traced, form = jax.make_jaxpr(fn, return_shape=True)()
        structure = jax.tree_util.tree_structure(form)
        for operand, index, changed, text in changes:
            with_change = _with(traced.jaxpr, call, index, changed)
            # The arrays are constants of the jaxpr: nothing else is computed before the function runs.
            run = jax.jit(lambda consts, jaxpr=with_change: core.eval_jaxpr(jaxpr, consts))
            try:
                outputs = run(traced.consts)
            except Exception:  # an index map that JAX does not take mends nothing
                continue
            if is_right(jax.tree_util.tree_unflatten(structure, outputs)):
                return Repair(operand, text)
    return None


def _changes(call: Call) -> Iterator[tuple[Operand, int, Any, str]]:
    """Yield an operand, its place among the block specs, another index map for it, and the change in words.

    The index maps that take the grid's indices in another order come first: of two operands that would both do, it is
    rarely the ordered one that is wrong.
    """
    for index, operand in sorted(enumerate(call.operands), key=lambda each: _is_ordered(each[1])):
        if operand.whole or operand.memory in ("any", "hbm"):
            continue
        closed = operand.mapping.index_map_jaxpr
        jaxpr, axes = closed.jaxpr, len(call.grid)
        for second in range(axes):
            for first in range(second):
                inputs = list(jaxpr.invars)
                inputs[first], inputs[second] = inputs[second], inputs[first]
                text = f"with grid indices {first} and {second} exchanged in {operand.index_map()}"
                yield operand, index, _closed(closed, invars=inputs), f"{text} the outputs are the reference's"
        for dimension, out in enumerate(jaxpr.outvars):
            if not hasattr(out, "val"):  # it is no constant
                continue
            for axis in range(axes):
                outputs = list(jaxpr.outvars)
                outputs[dimension] = jaxpr.invars[axis]
                instead = f"instead of {int(out.val)} as block index {dimension}"
                text = f"with grid index {axis} {instead} in {operand.index_map()}"
                yield operand, index, _closed(closed, outvars=outputs), f"{text} the outputs are the reference's"


def _is_ordered(operand: Operand) -> bool:
    """Return whether an index map takes the grid's indices in their order."""
    jaxpr = operand.mapping.index_map_jaxpr.jaxpr
    places = [jaxpr.invars.index(out) for out in jaxpr.outvars if not hasattr(out, "val") and out in jaxpr.invars]
    return places == sorted(places)


def _closed(closed: Any, **parts: Any) -> Any:
    return closed.replace(jaxpr=closed.jaxpr.replace(**parts))


def _with(jaxpr: Any, call: Call, index: int, index_map: Any) -> Any:
    """Return the jaxpr with another index map in each Pallas call like ``call``, at whatever depth."""
    return jaxpr.replace(eqns=[_changed(equation, call, index, index_map) for equation in jaxpr.eqns])


def _changed(equation: Any, call: Call, index: int, index_map: Any) -> Any:
    params = dict(equation.params)
    if equation.primitive.name == "pallas_call":
        found = call_of(params, [var.aval for var in equation.invars], equation.source_info)
        if found.likeness != call.likeness:
            return equation
        grid = params["grid_mapping"]
        blocks = list(grid.block_mappings)
        blocks[index] = replace(blocks[index], index_map_jaxpr=index_map)
        return equation.replace(params={**params, "grid_mapping": replace(grid, block_mappings=tuple(blocks))})
    for name, value in params.items():
        if hasattr(value, "jaxpr") and hasattr(value.jaxpr, "eqns"):  # a closed one, which has equations itself too
            params[name] = value.replace(jaxpr=_with(value.jaxpr, call, index, index_map))
        elif hasattr(value, "eqns"):
            params[name] = _with(value, call, index, index_map)
    return equation.replace(params=params)
