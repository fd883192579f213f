"""A function that is compiled as a whole: its kernels run over a mesh of cores and cannot be taken out of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from nkitools.pallas import jax_internals, source_places
from nkitools.pallas.calls import Call, equations, pallas_calls
from nkitools.pallas.imports import jax_module
from nkitools.pallas.jax_types import ClosedJaxpr

# What pl.kernel and pl.core_map are made of.
OVER_MESH = ("core_map", "mpmd_map")


@dataclass(frozen=True, eq=False)
class WholeFunction(Call):
    """A traced function in the place of a Pallas call. Rules of blocks and memory do not apply to it."""

    traced: ClosedJaxpr | None = None

    def as_function(self, **compiler_params: int) -> Callable[..., Any]:
        """Return the function of the arrays that it was traced with; it has no ``compiler_params`` of its own."""
        assert self.traced is not None
        jaxpr, constants = self.traced.jaxpr, len(self.traced.jaxpr.constvars)
        return lambda *arrays: jax_module("jax.core").eval_jaxpr(jaxpr, arrays[:constants], *arrays[constants:])


def calls_to_compile(traced: ClosedJaxpr) -> list[Call]:
    """Return the Pallas calls of a traced function, and the function itself where one runs over a mesh of cores."""
    function = whole(traced)
    return [*pallas_calls(traced), *([] if function is None else [function])]


def whole(traced: ClosedJaxpr) -> WholeFunction | None:
    """Return the function as one call to compile; None if none of its kernels runs over a mesh of cores."""
    first = next((each for each in equations(traced.jaxpr) if each.primitive.name in OVER_MESH), None)
    if first is None:
        return None
    kernel = jax_internals.first_kernel(first.params)
    place = source_places.of_source(first.source_info)
    kernel_place = source_places.of_function(kernel.debug_info, place)
    return WholeFunction(
        name=str(first.params.get("name") or kernel_place.function or "kernel"),
        place=place,
        kernel_place=kernel_place,
        grid=(),
        operands=(),
        prefetched=(),
        scratch=(),
        parallel=(),
        # The parameters make the key of compiled calls, so the function is one of them.
        params={"compiler_params": None, "jaxpr": SimpleNamespace(eqns=(), debug_info=None), "function": traced},
        avals=tuple(var.aval for var in (*traced.jaxpr.constvars, *traced.jaxpr.invars)),
        primitive=None,
        traced=traced,
    )
