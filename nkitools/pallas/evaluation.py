"""Evaluates jaxprs equation by equation; what an operation, a loop and a Pallas call give is a subclass's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from nkitools.pallas.jax_types import Equation

_SAYS_NOTHING = ("debug_callback", "debug_print")  # the run itself has printed it
_LOOPS = ("while", "scan", "cond")


class Evaluation(ABC):
    """Evaluates jaxprs. ``apart``: the operations whose jaxprs are not evaluated in their place."""

    apart: tuple[str, ...] = ("shard_map",)

    @abstractmethod
    def constant(self, value: Any, dtype: Any) -> Any:
        """Return a constant of a jaxpr, or a number that is written in it, as it is computed with."""

    @abstractmethod
    def pallas_call(self, equation: Equation, values: list[Any]) -> list[Any]:
        """Return the results of a Pallas call."""

    @abstractmethod
    def loop(self, name: str, params: Any, values: list[Any]) -> list[Any]:
        """Return the results of a ``while``, ``scan`` or ``cond``."""

    @abstractmethod
    def operation(self, equation: Equation, values: list[Any]) -> Any:
        """Return what any other operation gives: an array, or several where it has several results."""

    def evaluated(self, jaxpr: Any, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        """Return the outputs of a jaxpr."""
        known: dict[Any, Any] = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *args), strict=True))

        def value(atom: Any) -> Any:
            return self.constant(atom.val, atom.aval.dtype) if hasattr(atom, "val") else known[atom]

        for equation in jaxpr.eqns:
            results = self._equation(equation, [value(atom) for atom in equation.invars])
            known.update(zip(equation.outvars, results, strict=True))
        return [value(atom) for atom in jaxpr.outvars]

    def function(self, closed: Any) -> Callable[..., list[Any]]:
        """Return a closed jaxpr, or an open one without constants, as a function."""
        if hasattr(closed, "consts"):
            consts = [self.constant(each, each.dtype) for each in closed.consts]
            return lambda *args: self.evaluated(closed.jaxpr, consts, args)
        return lambda *args: self.evaluated(closed, (), args)

    def _equation(self, equation: Equation, values: list[Any]) -> list[Any]:
        name, params = equation.primitive.name, equation.params
        if name in _SAYS_NOTHING:
            return []
        if name == "pallas_call":
            return self.pallas_call(equation, values)
        if name in _LOOPS:
            return self.loop(name, params, values)
        inner = params.get("call_jaxpr", params.get("jaxpr"))
        if name not in self.apart and _takes(inner, len(values)):
            return self.function(inner)(*values)
        results = self.operation(equation, values)
        return list(results) if equation.primitive.multiple_results else [results]


def _takes(inner: Any, count: int) -> bool:
    """Return whether ``inner`` is a jaxpr of ``count`` arguments, constants included (as in ``run_scoped``)."""
    jaxpr = getattr(inner, "jaxpr", inner)
    own = 0 if hasattr(inner, "consts") else len(getattr(jaxpr, "constvars", ()))
    return hasattr(jaxpr, "eqns") and len(jaxpr.invars) + own == count
