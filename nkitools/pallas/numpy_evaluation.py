"""A function with Pallas calls evaluated by NumPy: what plain interpretation gives, without compiling it.

A kernel that runs once takes XLA a hundred times longer to compile than NumPy to evaluate, and a process that evaluates
by NumPy alone may be a fork. What it does not evaluate raises NotImplementedError: several devices, random numbers,
scatters and whatever else is no entry of `OPERATIONS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from nkitools.pallas import jax_internals
from nkitools.pallas.chips import CHIPS, DEFAULT
from nkitools.pallas.device_kinds import simulated_kinds
from nkitools.pallas.evaluation import Evaluation
from nkitools.pallas.imports import jax_module, of_arrays, without_jax_warnings
from nkitools.pallas.jax_types import Array, BlockMapping, ClosedJaxpr, Equation
from nkitools.pallas.numpy_operations import OPERATIONS, start_inside

_NOTHING = ("semaphore_signal", "semaphore_wait", "dma_wait", "delay")  # copies have arrived as soon as they start
_BLOCK_DIMENSIONS = ("Blocked", "int", "Squeezed", "NoneType", "Element")


def evaluated(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    *,
    wide: bool = False,
    unwritten: float | None = None,
    strict: bool = False,
) -> Any:
    """Return what ``fn(*args, **kwargs)`` returns, as arrays of NumPy; ``wide``: all floats are float64.

    Arguments that are JAX's arrays are traced, and those of NumPy are not. ``unwritten``: what memory holds that was
    never written, by default the values of JAX's interpretation. ``strict``: IndexError for an access or a block
    outside of its array, which is moved inside otherwise.
    """
    jax = jax_module()
    function, arrays = of_arrays(fn, args, kwargs, lambda leaf: isinstance(leaf, jax.Array))
    arrays = list(map(np.asarray, arrays))
    with without_jax_warnings(), simulated_kinds(CHIPS[DEFAULT]):
        traced, shapes = jax.make_jaxpr(function, return_shape=True)(*arrays)
    with np.errstate(all="ignore"):
        outputs = NumpyEvaluation(wide=wide, unwritten=unwritten, strict=strict).outputs(traced, arrays)
    return jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(shapes), outputs)


class NumpyEvaluation(Evaluation):
    """Evaluates jaxprs by NumPy. A reference to memory is an array or a part of one."""

    apart = ("shard_map", "run_scoped")

    def __init__(self, *, wide: bool, unwritten: float | None, strict: bool) -> None:
        self._wide, self._unwritten_value, self._strict = wide, unwritten, strict
        self._points: list[tuple[tuple[int, ...], tuple[int, ...]]] = []  # of the grids around: place and sizes

    def outputs(self, traced: ClosedJaxpr, arrays: Sequence[Array]) -> list[Array]:
        """Return the outputs of a traced function, in order."""
        return list(map(np.asarray, self.function(traced)(*(self.constant(each, each.dtype) for each in arrays))))

    def constant(self, value: Any, dtype: Any) -> Any:
        """Return a constant as an array of NumPy."""
        return self._as(np.asarray(value), dtype)

    def loop(self, name: str, params: Any, values: list[Any]) -> list[Any]:
        """Return the results of a loop or of a branch."""
        if name == "cond":
            branches = params["branches"]
            return self.function(branches[min(max(int(values[0]), 0), len(branches) - 1)])(*values[1:])
        if name == "scan":
            return self._scan(params, values)
        first, second = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
        condition, body = self.function(params["cond_jaxpr"]), self.function(params["body_jaxpr"])
        state = values[second:]
        while condition(*values[:first], *state)[0]:
            state = body(*values[first:second], *state)
        return state

    def _scan(self, params: Any, values: list[Any]) -> list[Any]:
        consts, carried = jax_internals.scan_counts(params)
        body, first = self.function(params["jaxpr"]), consts + carried
        state, made = values[consts:first], []
        turns = range(params["length"])
        for turn in reversed(turns) if params["reverse"] else turns:
            results = body(*values[:consts], *state, *(each[turn] for each in values[first:]))
            state = results[:carried]
            made.append(results[carried:])
        ordered = reversed(made) if params["reverse"] else made
        return [*state, *map(np.stack, zip(*ordered, strict=True))]

    def pallas_call(self, equation: Equation, values: list[Any]) -> list[Any]:
        """Run the kernel at each point of the grid, one after the other."""
        params, mapping = equation.params, equation.params["grid_mapping"]
        if jax_internals.meshes_of(params):
            raise NotImplementedError("a mesh of cores")
        bounds = iter(values[: mapping.num_dynamic_grid_bounds])
        grid = tuple(each if isinstance(each, int) else int(next(bounds)) for each in mapping.grid)
        given = list(map(np.array, values[mapping.num_dynamic_grid_bounds :]))
        made = [self._unwritten(each.array_aval) for each in mapping.block_mappings[mapping.num_inputs :]]
        for taken, place in params["input_output_aliases"]:
            made[place] = given[taken].copy()
        scalars, arrays = given[: mapping.num_index_operands], [*given[mapping.num_index_operands :], *made]
        arrays = [self._whole_blocks(each, block) for each, block in zip(arrays, mapping.block_mappings, strict=True)]
        self._run(jax_internals.first_kernel(params), mapping, grid, scalars, arrays)
        outputs = zip(arrays[mapping.num_inputs :], mapping.block_mappings[mapping.num_inputs :], strict=True)
        return [array[tuple(map(slice, block.array_aval.shape))] for array, block in outputs]

    def _run(self, jaxpr: Any, mapping: Any, grid: tuple[int, ...], scalars: list[Array], arrays: list[Array]) -> None:
        refs = jaxpr.invars[len(scalars) + len(arrays) :]
        scratch = [self._unwritten(each.aval) for each in refs]
        kept = [axis for axis in range(len(grid)) if axis not in mapping.vmapped_dims]
        for point in np.ndindex(*grid):
            self._points.append((tuple(point[axis] for axis in kept), tuple(grid[axis] for axis in kept)))
            at = [np.int32(each) for each in point]
            blocks = [
                self._block(array, block, self.function(block.index_map_jaxpr)(*at, *scalars))
                for array, block in zip(arrays, mapping.block_mappings, strict=True)
            ]
            self.evaluated(jaxpr, (), [*scalars, *blocks, *scratch])
            self._points.pop()

    def _whole_blocks(self, array: Array, block: BlockMapping) -> Array:
        """Return an array that ends with a whole block along each dimension, undefined behind its own end."""
        sizes = _block_sizes(block)
        shape = tuple(-(-size // each) * each for size, each in zip(array.shape, sizes, strict=True))
        if shape == array.shape:
            return array
        found = self._undefined(shape, array.dtype)
        found[tuple(map(slice, array.shape))] = array
        return found

    def operation(self, equation: Equation, values: list[Any]) -> Any:
        """Return what any other operation gives, in the dtypes that JAX gives it."""
        name, params = equation.primitive.name, equation.params
        if name in _NOTHING:
            return []
        if name in _OF_REFS:
            found = _OF_REFS[name](self, values, params)
        elif self._wide and name == "reduce_precision":
            found = values[0]
        elif self._wide and name == "bitcast_convert_type":
            found = OPERATIONS[name]([values[0].astype(equation.invars[0].aval.dtype)], **params)
        elif name == "convert_element_type":
            found = values[0]
        elif name in OPERATIONS:
            found = OPERATIONS[name](values, **params)
        else:
            raise NotImplementedError(name)
        if equation.primitive.multiple_results:
            return found
        aval = equation.outvars[0].aval
        return self._as(found, aval.dtype)

    def _as(self, value: Any, dtype: Any) -> Any:
        if self._wide and _is_float(dtype):
            dtype = np.dtype(np.float64)
        return value if value.dtype == dtype else value.astype(dtype)

    def _unwritten(self, aval: Any) -> Array:
        """Return memory that was never written."""
        is_wide = self._wide and _is_float(aval.dtype)
        return self._undefined(tuple(aval.shape), np.dtype(np.float64) if is_wide else aval.dtype)

    def _undefined(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """Return what JAX's interpretation has there: NaN, the least integer, no signal; or what was asked for."""
        if not isinstance(dtype, np.dtype):
            return np.zeros(shape, np.int16)
        usual = np.nan if _is_float(dtype) else np.iinfo(dtype).min if dtype.kind in "iu" else 0
        return np.full(shape, usual if self._unwritten_value is None else self._unwritten_value, dtype)

    def _block(self, array: Array, block: BlockMapping, places: Sequence[Any]) -> Array:
        """Return the block of an array at the places that an index map gives, as a part of the array."""
        sizes, kinds = _block_sizes(block), [type(each).__name__ for each in block.block_shape]
        steps = [size if kind in ("Blocked", "int") else 1 for size, kind in zip(sizes, kinds, strict=True)]
        starts = [int(at) * step for at, step in zip(places, steps, strict=True)]
        index = self._inside(starts, sizes, array.shape)
        squeezed = ("Squeezed", "NoneType")
        return array[tuple(each.start if kind in squeezed else each for each, kind in zip(index, kinds, strict=True))]

    def _inside(self, starts: Sequence[Any], sizes: Sequence[int], shape: Sequence[int]) -> tuple[slice, ...]:
        """Return a slice that is moved inside of an array. IndexError where it is outside, if that is asked for."""
        firsts = [int(at) + most if at < 0 else int(at) for at, most in zip(starts, shape, strict=True)]
        index = start_inside(firsts, sizes, shape)
        if self._strict and [each.start for each in index] != list(map(int, starts)):
            raise IndexError(f"{list(map(int, starts))} is outside of {list(shape)}")
        return index

    def _place(self, ref: Array, transforms: Sequence[Any]) -> tuple[Array, Any]:
        """Return the array and the index in it that a reference and its transforms mean."""
        index: Any = (...,)
        for each in transforms:
            if any(isinstance(part, np.ndarray) for part in index):
                raise NotImplementedError("a part of elements that are picked one by one")
            ref, index, kind = ref[index], (...,), type(each).__name__
            if kind == "NDIndexer":
                index = self._index(each)
            elif kind == "TransposeTransform":
                ref = ref.transpose(each.permutation)
            elif kind == "ReshapeTransform" and ref.flags.c_contiguous:
                ref = ref.reshape(each.shape)
            else:
                raise NotImplementedError(kind)
        return ref, index

    def _index(self, indexer: Any) -> tuple[Any, ...]:
        """Return an index of JAX as one of NumPy, which gives a part of the array and no copy where it can."""
        found: list[Any] = []
        for part, size in zip(indexer.indices, indexer.shape, strict=True):
            if hasattr(part, "stride"):
                extent = (int(part.size) - 1) * part.stride + 1
                (inside,) = self._inside([part.start], [extent], [size])
                found.append(slice(inside.start, inside.stop, part.stride))
            elif np.ndim(part):
                found.append(np.clip(part, 0, size - 1))
            else:
                found.append(self._inside([part], [1], [size])[0].start)
        return (*found, ...)

    def _program_id(self, values: list[Any], params: Mapping[str, Any]) -> Any:
        return np.int32(self._points[-1][0][params["axis"]])

    def _num_programs(self, values: list[Any], params: Mapping[str, Any]) -> Any:
        return np.int32(self._points[-1][1][params["axis"]])

    def _get(self, values: list[Any], params: Mapping[str, Any]) -> Any:
        array, index = self._place(values[0], params["tree"].unflatten(values[1:]))
        return np.array(array[index])

    def _swap(self, values: list[Any], params: Mapping[str, Any]) -> Any:
        array, index = self._place(values[0], params["tree"].unflatten(values[2:]))
        before = np.array(array[index])
        array[index] = values[1]
        return before

    def _add(self, values: list[Any], params: Mapping[str, Any]) -> Any:
        array, index = self._place(values[0], params["tree"].unflatten(values[2:]))
        array[index] += values[1]
        return []

    def _load(self, values: list[Any], params: Mapping[str, Any]) -> Any:
        ref, transforms, mask, other = params["args_tree"].unflatten(values)
        array, index = self._place(ref, transforms)
        found = np.array(array[index])
        return found if mask is None else np.where(mask, found, np.zeros_like(found) if other is None else other)

    def _store(self, values: list[Any], params: Mapping[str, Any]) -> Any:
        ref, transforms, value, mask = params["args_tree"].unflatten(values)
        array, index = self._place(ref, transforms)
        before = np.array(array[index])
        array[index] = value if mask is None else np.where(mask, value, before)
        return before

    def _scoped(self, values: list[Any], params: Mapping[str, Any]) -> Any:
        jaxpr = getattr(params["jaxpr"], "jaxpr", params["jaxpr"])  # closed from JAX 0.11 on
        return self.evaluated(jaxpr, values, [self._unwritten(each.aval) for each in jaxpr.invars])

    def _copy(self, values: list[Any], params: Mapping[str, Any]) -> Any:
        source, target, _, _, device = params["tree"].unflatten(values)
        if device is not None:
            raise NotImplementedError("a copy to another device")
        (taken, index), (array, place) = (
            self._place(getattr(each, "ref", each), getattr(each, "transforms", ())) for each in (source, target)
        )
        array[place] = taken[index]
        return []


_OF_REFS: dict[str, Callable[[NumpyEvaluation, list[Any], Mapping[str, Any]], Any]] = {
    "program_id": NumpyEvaluation._program_id,
    "num_programs": NumpyEvaluation._num_programs,
    "get": NumpyEvaluation._get,
    "swap": NumpyEvaluation._swap,
    "addupdate": NumpyEvaluation._add,
    "masked_load": NumpyEvaluation._load,
    "masked_swap": NumpyEvaluation._store,
    "run_scoped": NumpyEvaluation._scoped,
    "dma_start": NumpyEvaluation._copy,
}


@cache
def _is_float(dtype: Any) -> bool:
    numpy = jax_module("jax.numpy")
    return bool(numpy.issubdtype(dtype, numpy.floating))


def _block_sizes(block: BlockMapping) -> list[int]:
    """Return the sizes of a block. NotImplementedError for dimensions of other kinds than those with a fixed size."""
    found = []
    for each in block.block_shape:
        if type(each).__name__ not in _BLOCK_DIMENSIONS or any(getattr(each, "padding", ())):
            raise NotImplementedError(f"a block dimension {each}")
        is_one = each is None or type(each).__name__ == "Squeezed"
        found.append(1 if is_one else int(getattr(each, "block_size", each)))
    return found
