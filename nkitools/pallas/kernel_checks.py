"""PL212: the ``pl.debug_check`` of a kernel, which no interpreter of JAX looks at."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from nkitools.pallas import jax_internals, source_places
from nkitools.pallas.imports import jax_module
from nkitools.pallas.jax_types import Array, Shaped
from nkitools.pallas.source_places import Place


@contextlib.contextmanager
def reporting_checks() -> Iterator[None]:
    """Report each failing ``pl.debug_check`` of kernels that are watched inside the block, if this JAX allows it."""
    if jax_internals.moved(jax_internals.CHECKS):
        yield
        return
    primitive = jax_internals.of(jax_internals.CHECKIFY, "check_p")
    with jax_internals.bound_by(primitive, _bind):
        yield


def _bind(theirs: Callable[..., Any], *args: Shaped, **params: Any) -> Any:
    axes = jax_internals.of(jax_internals.PALLAS_CORE, "current_grid_env")()
    if axes is None or not params["debug"]:  # not in a kernel, in one that is only being traced, or of checkify itself
        return theirs(*args, **params)
    tree = jax_module().tree_util
    error = tree.tree_unflatten(params["err_tree"], args)
    (failed,), (form,), (payload,) = error._pred.values(), error._metadata.values(), error._payload.values()
    text = str(getattr(tree.tree_unflatten(form, payload), "fmt_string", ""))
    place = source_places.of_source(jax_internals.of(jax_internals.SOURCES, "current")())
    jax_module("jax.debug").callback(partial(_judge, text, place), failed, *(axis.index for axis in axes))
    return []


def _judge(text: str, place: Place, failed: Array, *point: Array) -> None:
    kernel = getattr(jax_module(jax_internals.INTERPRETER)._shared_memory, "kernel", None)
    if bool(failed) and kernel is not None and kernel.call is not None:
        here = place if place.line else kernel.call.kernel_place
        at = tuple(int(each) for each in point)
        kernel.rules.tell("PL212", f"a check of the kernel does not hold: {text}", here, at, f"{here.line}")
