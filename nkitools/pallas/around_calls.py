"""Follows a traced function around its Pallas calls: the values of their scalars, and the bytes that XLA moves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from nkitools.pallas.jax_types import ClosedJaxpr
from nkitools.pallas.static import bit_width_in_memory
from nkitools.pallas.whole_function import OVER_MESH

_MOST_KNOWN = 1 << 20  # elements of an array whose values are computed
_INNER = ("call_jaxpr", "jaxpr", "fun_jaxpr")
_NAMES = ("copy", "with_memory_space_constraint", "optimization_barrier")
_RESHAPES = ("reshape", "squeeze", "expand_dims")


class Around:
    """The operations of a traced function outside of its Pallas calls.

    ``scalars``: for each call, by the identity of its parameters, the values of its operands that follow from the
    given arrays; None for the others. ``moved``: the bytes that XLA reads and writes for arrays that are operands of
    a call, or outputs, and that neither a caller nor a call has made. A chain of operations is taken to be one.
    """

    def __init__(self, traced: ClosedJaxpr, arrays: Sequence[Any]) -> None:
        self.scalars: dict[int, list[Any]] = {}
        self.moved = 0.0
        self._same: dict[Any, Any] = {}  # the variable that one is another name of
        self._turned: dict[Any, tuple[Any, tuple[int, ...]]] = {}  # what one is the transpose of, and how
        self._read: dict[Any, dict[Any, float]] = {}  # the bytes of the stored arrays that one is computed from
        jaxpr = traced.jaxpr
        values = [*traced.consts, *(each if _is_known(each) else None for each in arrays)]
        self._run(jaxpr, dict(zip((*jaxpr.constvars, *jaxpr.invars), values, strict=True)))
        outputs = [self._named(var) for var in jaxpr.outvars if not hasattr(var, "val")]
        for var in outputs:
            self._store(var)
        self.moved += sum(2 * _bytes(var.aval) for at, var in enumerate(outputs) if var in outputs[:at])

    def _named(self, var: Any) -> Any:
        while var in self._same:
            var = self._same[var]
        return var

    def _run(self, jaxpr: Any, known: dict[Any, Any]) -> None:
        for equation in jaxpr.eqns:
            values = [var.val if hasattr(var, "val") else known.get(var) for var in equation.invars]
            given = [self._named(var) for var in equation.invars if not hasattr(var, "val")]
            if equation.primitive.name in ("pallas_call", *OVER_MESH):
                self.scalars[id(equation.params)] = values
                for var in given:
                    self._store(var)
            elif (inner := _inner(equation)) is not None:
                self._call(equation, inner, values, known)
            else:
                known.update(zip(equation.outvars, _computed(equation, values), strict=True))
                self._read_by(equation, given)

    def _call(self, equation: Any, inner: Any, values: list[Any], known: dict[Any, Any]) -> None:
        jaxpr, consts = getattr(inner, "jaxpr", inner), list(getattr(inner, "consts", ()))
        own = (*jaxpr.constvars, *jaxpr.invars)
        arguments = zip(own[len(own) - len(values) :], equation.invars, strict=True)
        self._same.update((var, given) for var, given in arguments if not hasattr(given, "val"))
        known.update(zip(own, [*consts, *values], strict=True))
        self._run(jaxpr, known)
        for out, var in zip(equation.outvars, jaxpr.outvars, strict=True):
            known[out] = var.val if hasattr(var, "val") else known.get(var)
            if not hasattr(var, "val"):
                self._same[out] = self._named(var)

    def _read_by(self, equation: Any, given: list[Any]) -> None:
        """Note what the results of an operation are computed from: nothing for another name of the same bytes."""
        name, out = equation.primitive.name, next(iter(equation.outvars), None)
        if out is None:
            return
        if name == "transpose":
            source, order = self._turned.get(given[0], (given[0], tuple(range(len(out.aval.shape)))))
            order = tuple(order[axis] for axis in equation.params["permutation"])
            if order == tuple(range(len(order))):
                self._same[out] = source
                return
            self._turned[out] = source, order
        elif given and (name in _NAMES or (name in _RESHAPES and out.aval.shape[-2:] == given[0].aval.shape[-2:])):
            self._same[out] = given[0]
            return
        found: dict[Any, float] = {}
        for var in given:
            for source, size in (self._read.get(var) or {var: _bytes(var.aval)}).items():
                found[source] = max(found.get(source, 0), _needed(equation, size))
        self._read.update((each, found) for each in equation.outvars)

    def _store(self, var: Any) -> None:
        """Count an array that is computed as read from its sources, and as written."""
        sources = self._read.pop(var, {})
        if sources:
            self.moved += sum(sources.values()) + _bytes(var.aval)


def _needed(equation: Any, size: float) -> float:
    """Return the bytes of a source that an operation reads: a slice leaves out rows, but no columns of them."""
    if equation.primitive.name not in ("slice", "dynamic_slice", "gather") or not equation.outvars[0].aval.shape:
        return size
    source, out = equation.invars[0].aval, equation.outvars[0].aval
    if len(source.shape) != len(out.shape):
        return min(size, _bytes(out))
    cut = math.prod(out.shape[:-1]) / max(math.prod(source.shape[:-1]), 1)
    return float(size * min(cut, 1.0))


def _inner(equation: Any) -> Any:
    """Return the jaxpr that an equation evaluates in its place; None if it does not."""
    if equation.primitive.name in ("scan", "while", "cond", "shard_map", "custom_vjp_call_jaxpr"):
        return None
    for name in _INNER:
        inner = equation.params.get(name)
        jaxpr = getattr(inner, "jaxpr", inner)
        if hasattr(jaxpr, "eqns") and len(jaxpr.invars) == len(equation.invars):
            return inner
    return None


def _computed(equation: Any, values: list[Any]) -> list[Any]:
    """Return the results of an operation on known values; None for each if one is unknown or much."""
    size = sum(math.prod(getattr(var.aval, "shape", ())) for var in equation.outvars)
    if size > _MOST_KNOWN or any(value is None for value in values) or not equation.outvars:
        return [None] * len(equation.outvars)
    results = equation.primitive.bind(*values, **equation.params)
    return list(results) if equation.primitive.multiple_results else [results]


def _is_known(array: Any) -> bool:
    return isinstance(array, np.ndarray | np.generic) or hasattr(array, "addressable_shards")


def _bytes(aval: Any) -> float:
    return math.prod(aval.shape) * bit_width_in_memory(aval.dtype) / 8 if hasattr(aval, "shape") else 0.0
