"""A reference runs no kernel that it judges: one that does returns what the kernel computes, wrong or right."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

from nkitools.authors_code.called_functions import plain_function
from nkitools.authors_code.named_values import variables_around
from nkitools.chip.numerics import Array
from nkitools.comparison.form import NothingCompared
from nkitools.launch.kernel import grid_of
from nkitools.launch.second_run import Again
from nkitools.precision.difference import exact
from nkitools.record.run import Run
from nkitools.record.run_listeners import collect_runs
from nkitools.record.saved.encoding import leaves


@contextmanager
def independent_of(
    kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, chip: str = "", grid: Any = None
) -> Iterator[None]:
    """Raise NothingCompared if the block, the call of a reference, runs ``kernel`` on the same values.

    A run with other arguments, on another ``chip`` or with another ``grid`` says something about the kernel, so it is
    no error. ``chip``: '' for any. ``args``, ``kwargs``: what the reference is called with.
    """
    __tracebackhide__ = True
    with collect_runs() as runs:
        try:
            yield
        finally:  # the kernel may refuse the float64 arrays that a reference gets
            sizes = grid_of(grid or getattr(kernel, "grid", None)) or (1,)
            for run in runs:
                if chip in ("", run.chip) and _is_same_call(run.again, kernel, sizes, args, kwargs):
                    raise NothingCompared(
                        f"the reference runs the kernel {run.kernel} itself on the same arguments: nothing is "
                        "compared. Write what is right without the kernel, in NumPy for example."
                    )


def independent_of_run(run: Run, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> AbstractContextManager[None]:
    """Return `independent_of` for the kernel, chip and grid of a run; a block without a check if they are unknown."""
    again = getattr(run, "again", None)
    if not isinstance(again, Again):
        return nullcontext()
    return independent_of(again.launch.function, args, dict(kwargs), chip=run.chip, grid=again.launch.grid)


def _is_same_call(
    again: Any, kernel: Any, sizes: tuple[int, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> bool:
    """Return True if a run is of ``kernel``, with these sizes of a grid and these arguments in whatever dtypes."""
    if not isinstance(again, Again) or (again.launch.grid or (1,)) != sizes:
        return False
    own, function = plain_function(again.launch.function), plain_function(kernel)
    if own is None or function is None or own.__code__ != function.__code__:
        return False
    if not _are_alike(_around(again.launch.function), _around(kernel)):
        return False
    first, second = _values(function, *again.arguments_now()), _values(function, args, kwargs)
    return first.keys() == second.keys() and all(_is_same(first[name], second[name]) for name in first)


def _around(kernel: Any) -> list[Any]:
    """Return what decides a kernel's results beside its code: variables around it, defaults, a partial's arguments."""
    found, value = list[Any](), getattr(kernel, "function", kernel)
    while isinstance(value, partial):
        found += [*value.args, *value.keywords.values()]
        value = value.func
    plain = plain_function(kernel)
    assert plain is not None
    return [
        *found,
        *variables_around(plain).values(),
        *(plain.__defaults__ or ()),
        *(plain.__kwdefaults__ or {}).values(),
    ]


def _are_alike(first: list[Any], second: list[Any]) -> bool:
    return len(first) == len(second) and all(
        one is other or (isinstance(one, int | float | str) and one == other)
        for one, other in zip(first, second, strict=True)
    )


def _values(function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a call by the names of the parameters; of ranks, whose tuples fit no kernel, by place."""
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return dict(leaves([args, kwargs]))
    bound.apply_defaults()
    return dict(leaves(bound.arguments))


def _is_same(first: Any, second: Any) -> bool:
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        one, other = _numbers(first), _numbers(second)
        return np.array_equal(one, other, equal_nan=one.dtype.kind == other.dtype.kind == "f")
    return first is second or bool(np.all(first == second))


def _numbers(array: Array) -> Array:
    return array if array.dtype.kind not in "biufcV" else exact(array)
