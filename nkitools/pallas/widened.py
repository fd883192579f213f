"""A traced function evaluated with float32 in the place of every narrower float: the shadow of a precision split."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

from nkitools.pallas import jax_internals
from nkitools.pallas.evaluation import Evaluation
from nkitools.pallas.imports import jax_module, refuse
from nkitools.pallas.jax_types import ClosedJaxpr, Equation


class Widening(Evaluation):
    """Evaluates jaxprs in float32. ``rounded``: the operations that took bits of narrower floats as they are."""

    def __init__(self) -> None:
        self.rounded: Counter[str] = Counter()

    def outputs(self, traced: ClosedJaxpr) -> Any:
        """Return the outputs of a traced function without arguments, in order."""
        program = jax_module().jit(lambda consts: self.evaluated(traced.jaxpr, consts, ()))
        return program([_wide(each) for each in traced.consts])

    def constant(self, value: Any, dtype: Any) -> Any:
        """Return a constant in float32."""
        return _wide(value)

    def operation(self, equation: Equation, values: list[Any]) -> Any:
        """Return what JAX gives in float32."""
        name, params = equation.primitive.name, equation.params
        if name == "reduce_precision":
            return values[0]
        if name == "bitcast_convert_type":
            return self._bits(equation, values[0])
        if any(hasattr(getattr(each, "jaxpr", each), "eqns") for each in params.values()):
            refuse(f"`{name}` has no shadow in float32", "Split the precision of the function within it.")
        wide = {key: _wide_dtype(each) for key, each in params.items()}
        return equation.primitive.bind(*values, **wide)

    def pallas_call(self, equation: Equation, values: list[Any]) -> list[Any]:
        """Evaluate JAX's plain interpretation of a Pallas call."""
        params = {key: each for key, each in equation.params.items() if key not in ("interpret", "backend")}
        interpret = jax_internals.of(jax_internals.PLAIN_INTERPRETER, "pallas_call_hlo_interpret")
        shapes = [jax_module().ShapeDtypeStruct(atom.aval.shape, atom.aval.dtype) for atom in equation.invars]
        traced = jax_module().make_jaxpr(partial(interpret, **params))(*shapes)
        return self.function(traced)(*values)

    def loop(self, name: str, params: Any, values: list[Any]) -> list[Any]:
        """Return JAX's loop over an evaluated body."""
        lax = jax_module("jax.lax")
        if name == "cond":
            branches = [self.function(branch) for branch in params["branches"]]
            return list(lax.switch(values[0], branches, *values[1:]))
        if name == "scan":
            consts, carried = jax_internals.scan_counts(params)
            body = self.function(params["jaxpr"])

            def step(state: Any, slices: Any) -> Any:
                results = body(*values[:consts], *state, *slices)
                return results[:carried], results[carried:]

            options = {key: params[key] for key in ("length", "reverse", "unroll")}
            first = consts + carried
            last, stacked = lax.scan(step, values[consts:first], values[first:], **options)
            return [*last, *stacked]
        first, second = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
        condition, body = self.function(params["cond_jaxpr"]), self.function(params["body_jaxpr"])
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
