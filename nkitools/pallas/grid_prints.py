"""The place of device prints: the point of the grid, the author's file and line.

While JAX interprets a kernel it makes each print anew for the program that runs on the CPU, and at that moment the grid
point is at hand, as values of that program. Prints made then get the grid point as further arguments. In plain
interpretation, within pl.when and loops, JAX does not pass this point, and a print is recorded without its place.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from nkitools.pallas import jax_internals, source_places
from nkitools.pallas.imports import jax_module
from nkitools.pallas.jax_types import Array, Shaped
from nkitools.pallas.prints import hear
from nkitools.pallas.source_places import Place

_lock = threading.RLock()


@contextlib.contextmanager
def placing_prints() -> Iterator[None]:
    """Give prints of kernels that are interpreted inside the block a grid point and a line, if this JAX allows it."""
    if jax_internals.moved(jax_internals.GRID_PRINTS):
        yield
        return
    primitive = jax_internals.of(jax_internals.DEBUGGING, "debug_print_p")
    with _lock, jax_internals.bound_by(primitive, _bind):
        yield


def _bind(theirs: Callable[..., Any], *args: Shaped, **params: Any) -> Any:
    axes = jax_internals.of(jax_internals.PALLAS_CORE, "current_grid_env")()
    if axes is None:  # not in a kernel, or in one that is only being traced
        return theirs(*args, **params)
    place = source_places.of_source(jax_internals.of(jax_internals.SOURCES, "current")())
    form = (params["fmt"], dict(params["np_printoptions"]), params["has_placeholders"], params["logging_record"])
    say = partial(_say, form, (params["in_tree"], params["static_args"]), len(args), place)
    jax_module("jax.debug").callback(say, *args, *(axis.index for axis in axes), ordered=params["ordered"])
    return []


def _say(form: tuple[Any, ...], structure: tuple[Any, Any], count: int, place: Place, *values: Array) -> None:
    merge = jax_internals.of(jax_internals.DEBUGGING, "merge_callback_args")
    in_tree, static = structure
    args, kwargs = merge(in_tree, list(values[:count]), static)
    where: dict[str, Any] = {"program": tuple(int(each) for each in values[count:])}
    if place.line:
        where |= {"file": place.file, "line": place.line}
    hear(form, tuple(args), kwargs, **where)
