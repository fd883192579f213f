"""Pallas kernels, interpreted, against jnp: element by element, products and reductions over grids of blocks."""

from __future__ import annotations

import functools
import random as _random
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from nkitools.pallas import run
from tests.oracle.programs import Program

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "maximum": jnp.maximum,
    "minimum": jnp.minimum,
    "larger": lambda x, y: jnp.where(x > y, x, 2 * y),
}
REDUCTIONS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {
    "sum": (jnp.sum, lambda x, y: x + y),
    "max": (jnp.max, jnp.maximum),
    "min": (jnp.min, jnp.minimum),
}
KINDS = ("elementwise", "matmul", "reduction")
# Which block of an input belongs to the block (i, j) of the result, and its shape in blocks.
PLACES: dict[str, Callable[[int, int], tuple[int, int]]] = {
    "same": lambda i, j: (i, j),
    "row": lambda i, j: (i, 0),
    "column": lambda i, j: (0, j),
    "first": lambda i, j: (0, 0),
}
_SIZES = ((8, 128), (16, 128), (8, 256), (32, 128))


def program_of(seed: int) -> Program:
    """Return the program of a seed: small whole numbers, so that every order of sums has the same bits."""
    random = _random.Random(seed)
    program: Program = {
        "seed": seed,
        "kind": random.choice(KINDS),
        "dtype": random.choice(["float32", "float32", "int32", "bfloat16"]),
        "block": list(random.choice(_SIZES)),
        "grid": [random.randint(1, 3) for _ in range(3)],
        "inputs": [random.choice(list(PLACES)) for _ in range(random.randint(1, 3))],
        "backwards": random.random() < 0.3,
        "reduction": random.choice(list(REDUCTIONS)),
        "scratch": random.random() < 0.5,
    }
    program["expression"] = _expression(random, len(program["inputs"]), random.randint(1, 3))
    if program["kind"] == "matmul" and program["dtype"] == "int32":
        program["dtype"] = "float32"
    return program


def _expression(random: _random.Random, inputs: int, depth: int) -> Any:
    if not depth or random.random() < 0.2:
        return random.randrange(inputs) if random.random() < 0.8 else [random.randint(-2, 2)]
    return [random.choice(list(BINARY)), *(_expression(random, inputs, depth - 1) for _ in range(2))]


def _value(expression: Any, inputs: list[Any]) -> Any:
    if isinstance(expression, int):
        return inputs[expression]
    if len(expression) == 1:
        return jnp.full_like(inputs[0], expression[0])
    name, one, other = expression
    return BINARY[name](_value(one, inputs), _value(other, inputs))


def names_of(program: Program) -> list[str]:
    """Return the kind of a program."""
    return [f"{program['kind']} {program['dtype']}"]


def smaller(program: Program) -> Iterator[Program]:
    """Yield programs of fewer blocks, of a part of the expression, of float32, without what is special."""
    for axis, count in enumerate(program["grid"]):
        if count > 1:
            yield {**program, "grid": [1 if at == axis else each for at, each in enumerate(program["grid"])]}
    if isinstance(program["expression"], list) and len(program["expression"]) == 3:
        for part in program["expression"][1:]:
            yield {**program, "expression": part}
    if program["dtype"] != "float32":
        yield {**program, "dtype": "float32"}
    for name in ("backwards", "scratch"):
        if program[name]:
            yield {**program, name: False}


def disagreement(program: Program) -> str:
    """Return how the results differ."""
    arrays = inputs_of(program)
    done = run(functools.partial(interpreted, program), *arrays)
    wanted = np.asarray(_WANTED[program["kind"]](program, *map(jnp.asarray, arrays)))
    found = np.asarray(done.outputs)
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return f"{found.dtype}{found.shape}, not {wanted.dtype}{wanted.shape}"
    different = found != wanted
    if not different.any():
        return ""
    at = tuple(int(each) for each in np.argwhere(different)[0])
    return f"{found[at]} at {list(at)}, not {wanted[at]}; {int(different.sum())} of {found.size} elements differ"


def inputs_of(program: Program) -> list[Any]:
    """Return the arrays of a program."""
    (rows, columns), (i, j, k) = program["block"], program["grid"]
    if program["kind"] == "matmul":
        shapes = [(i * rows, k * columns), (k * columns, j * columns)]
    elif program["kind"] == "reduction":
        shapes = [(i * rows, j * columns)]
    else:
        shapes = [_shape(program, place) for place in program["inputs"]]
    random = np.random.default_rng(program["seed"])
    return [random.integers(-2, 3, shape).astype(jnp.dtype(program["dtype"])) for shape in shapes]


def _shape(program: Program, place: str) -> tuple[int, int]:
    (rows, columns), (i, j, _) = program["block"], program["grid"]
    last = PLACES[place](i - 1, j - 1)
    return (last[0] + 1) * rows, (last[1] + 1) * columns


def interpreted(program: Program, *arrays: Any) -> Any:
    """Return what the Pallas kernel of a program makes of its arrays."""
    call: Callable[..., Any] = _KERNELS[program["kind"]](program)
    return call(*arrays)


def _ahead(program: Program) -> Callable[[int, int], int]:
    """Return the number of a block at a step of the grid; backwards, where the program says so."""
    return (lambda step, count: count - 1 - step) if program["backwards"] else (lambda step, count: step)


def _elementwise(program: Program) -> Any:
    (rows, columns), (i, j, _) = program["block"], program["grid"]
    ahead = _ahead(program)

    def kernel(*references: Any) -> None:
        *sources, out = references
        out[...] = _value(program["expression"], [each[...] for each in sources]).astype(out.dtype)

    def spec(place: str) -> Any:
        return pl.BlockSpec((rows, columns), lambda a, b: PLACES[place](ahead(a, i), ahead(b, j)))

    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((i * rows, j * columns), jnp.dtype(program["dtype"])),
        grid=(i, j),
        in_specs=[spec(place) for place in program["inputs"]],
        out_specs=spec("same"),
    )


def _matmul(program: Program) -> Any:
    (rows, columns), (i, j, k) = program["block"], program["grid"]
    ahead = _ahead(program)

    def kernel(left: Any, right: Any, out: Any, *scratch: Any) -> None:
        total = scratch[0] if scratch else out

        @pl.when(pl.program_id(2) == 0)
        def _() -> None:
            total[...] = jnp.zeros_like(total)

        total[...] += jnp.dot(left[...], right[...], preferred_element_type=jnp.float32)

        if scratch:

            @pl.when(pl.program_id(2) == k - 1)
            def _() -> None:
                out[...] = total[...]

    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((i * rows, j * columns), jnp.float32),
        grid=(i, j, k),
        in_specs=[
            pl.BlockSpec((rows, columns), lambda a, b, c: (ahead(a, i), c)),
            pl.BlockSpec((columns, columns), lambda a, b, c: (c, ahead(b, j))),
        ],
        out_specs=pl.BlockSpec((rows, columns), lambda a, b, c: (ahead(a, i), ahead(b, j))),
        scratch_shapes=[pltpu.VMEM((rows, columns), jnp.float32)] if program["scratch"] else [],
    )


def _reduction(program: Program) -> Any:
    (rows, columns), (i, j, _) = program["block"], program["grid"]
    ahead = _ahead(program)
    whole, join = REDUCTIONS[program["reduction"]]

    def kernel(source: Any, out: Any) -> None:
        part = whole(source[...], axis=1, keepdims=True).astype(out.dtype)

        @pl.when(pl.program_id(1) == 0)
        def _() -> None:
            out[...] = jnp.broadcast_to(part, out.shape)

        @pl.when(pl.program_id(1) > 0)
        def _() -> None:
            out[...] = join(out[...], part)

    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((i * rows, columns), jnp.dtype(program["dtype"])),
        grid=(i, j),
        in_specs=[pl.BlockSpec((rows, columns), lambda a, b: (ahead(a, i), b))],
        out_specs=pl.BlockSpec((rows, columns), lambda a, b: (ahead(a, i), 0)),
    )


_KERNELS = {"elementwise": _elementwise, "matmul": _matmul, "reduction": _reduction}


def _whole_elementwise(program: Program, *arrays: Any) -> Any:
    (rows, columns), (i, j, _) = program["block"], program["grid"]
    wide = [jnp.tile(array, (i * rows // array.shape[0], j * columns // array.shape[1])) for array in arrays]
    return _value(program["expression"], wide).astype(arrays[0].dtype)


def _whole_matmul(_program: Program, left: Any, right: Any) -> Any:
    return jnp.dot(left.astype(jnp.float32), right.astype(jnp.float32), precision="highest")


def _whole_reduction(program: Program, source: Any) -> Any:
    rows = REDUCTIONS[program["reduction"]][0](source.astype(jnp.float32), axis=1, keepdims=True)
    return jnp.broadcast_to(rows, (source.shape[0], program["block"][1])).astype(source.dtype)


_WANTED = {"elementwise": _whole_elementwise, "matmul": _whole_matmul, "reduction": _whole_reduction}
