"""A traced function evaluated with float32 in the place of every narrower float: the shadow of a precision split."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from nkitools.pallas import jax_internals
from nkitools.pallas.imports import jax_module, refuse
from nkitools.pallas.jax_types import ClosedJaxpr, Equation

_SAYS_NOTHING = ("debug_callback", "debug_print")  # the precise run has printed it
_LOOPS = ("while", "scan", "cond")


class Widening:
    """Evaluates jaxprs in float32. ``rounded``: the operations that took bits of narrower floats as they are."""

    def __init__(self) -> None:
        self.rounded: Counter[str] = Counter()

    def outputs(self, traced: ClosedJaxpr) -> Any:
        """Return the outputs of a traced function without arguments, in order."""
        program = jax_module().jit(lambda consts: self._evaluated(traced.jaxpr, consts, ()))
        return program([_wide(each) for each in traced.consts])

    def _evaluated(self, jaxpr: Any, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        known: dict[Any, Any] = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *args), strict=True))

        def value(atom: Any) -> Any:
            return _wide(atom.val) if hasattr(atom, "val") else known[atom]

        for equation in jaxpr.eqns:
            results = self._equation(equation, [value(atom) for atom in equation.invars])
            known.update(zip(equation.outvars, results, strict=True))
        return [value(atom) for atom in jaxpr.outvars]

    def _closed(self, closed: Any) -> Callable[..., list[Any]]:
        """Return a closed jaxpr, or an open one without constants, as a function."""
        if hasattr(closed, "consts"):
            return lambda *args: self._evaluated(closed.jaxpr, [_wide(each) for each in closed.consts], args)
        return lambda *args: self._evaluated(closed, (), args)

    def _equation(self, equation: Equation, values: list[Any]) -> list[Any]:
        name, params = equation.primitive.name, equation.params
        if name in _SAYS_NOTHING:
            return []
        if name == "pallas_call":
            return self._pallas_call(equation, values)
        if name in _LOOPS:
            return self._loop(name, params, values)
        inner = params.get("call_jaxpr", params.get("jaxpr"))
        if name != "shard_map" and _takes(inner, len(values)):
            return self._closed(inner)(*values)
        if name == "reduce_precision":
            return values
        if name == "bitcast_convert_type":
            return [self._bits(equation, values[0])]
        if any(hasattr(getattr(each, "jaxpr", each), "eqns") for each in params.values()):
            refuse(f"`{name}` has no shadow in float32", "Split the precision of the function within it.")
        wide = {key: _wide_dtype(each) for key, each in params.items()}
        results = equation.primitive.bind(*values, **wide)
        return list(results) if equation.primitive.multiple_results else [results]

    def _pallas_call(self, equation: Equation, values: list[Any]) -> list[Any]:
        """Evaluate JAX's plain interpretation of a Pallas call."""
        params = {key: each for key, each in equation.params.items() if key not in ("interpret", "backend")}
        interpret = jax_internals.of(jax_internals.PLAIN_INTERPRETER, "pallas_call_hlo_interpret")
        shapes = [jax_module().ShapeDtypeStruct(atom.aval.shape, atom.aval.dtype) for atom in equation.invars]
        traced = jax_module().make_jaxpr(partial(interpret, **params))(*shapes)
        return self._closed(traced)(*values)

    def _loop(self, name: str, params: Any, values: list[Any]) -> list[Any]:
        lax = jax_module("jax.lax")
        if name == "cond":
            branches = [self._closed(branch) for branch in params["branches"]]
            return list(lax.switch(values[0], branches, *values[1:]))
        if name == "scan":
            consts, carried = jax_internals.scan_counts(params)
            body = self._closed(params["jaxpr"])

            def step(state: Any, slices: Any) -> Any:
                results = body(*values[:consts], *state, *slices)
                return results[:carried], results[carried:]

            options = {key: params[key] for key in ("length", "reverse", "unroll")}
            first = consts + carried
            last, stacked = lax.scan(step, values[consts:first], values[first:], **options)
            return [*last, *stacked]
        first, second = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
        condition, body = self._closed(params["cond_jaxpr"]), self._closed(params["body_jaxpr"])
        return list(
            lax.while_loop(
                lambda state: condition(*values[:first], *state)[0],
                lambda state: body(*values[first:second], *state),
                values[second:],
            )
        )

    def _bits(self, equation: Equation, value: Any) -> Any:
        (taken,), (made,) = equation.invars, equation.outvars
        narrow = value.astype(taken.aval.dtype)
        if _is_narrow(taken.aval.dtype) or _is_narrow(made.aval.dtype):
            self.rounded[equation.primitive.name] += 1
        return _wide(equation.primitive.bind(narrow, **equation.params))


def _takes(inner: Any, count: int) -> bool:
    """Return whether ``inner`` is a jaxpr of ``count`` arguments, constants included (as in ``run_scoped``)."""
    jaxpr = getattr(inner, "jaxpr", inner)
    own = 0 if hasattr(inner, "consts") else len(getattr(jaxpr, "constvars", ()))
    return hasattr(jaxpr, "eqns") and len(jaxpr.invars) + own == count


def _is_narrow(dtype: Any) -> bool:
    numpy = jax_module("jax.numpy")
    return bool(numpy.issubdtype(dtype, numpy.floating)) and dtype.itemsize < 4


def _wide_dtype(thing: Any) -> Any:
    """Return float32 for a dtype of fewer bits, anything else as it is."""
    is_dtype = hasattr(thing, "itemsize") and hasattr(thing, "kind")
    return jax_module("jax.numpy").dtype("float32") if is_dtype and _is_narrow(thing) else thing


def _wide(value: Any) -> Any:
    """Return an array or number, as float32 if its dtype is narrower."""
    dtype = getattr(value, "dtype", None)
    if dtype is None or not _is_narrow(dtype):
        return value
    return jax_module("jax.numpy").asarray(value).astype("float32")
