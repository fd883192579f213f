"""An input that tells a mutant from the kernel: the arguments of the author's tests in other sizes and values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from nkitools.comparison.compared_arrays import compared
from nkitools.comparison.rule import EXACT
from nkitools.precision.runs import arrays_in, copied
from nkitools.sweeps.mutants.tests_of_author import Call, module_of_text
from nkitools.targets.imports import stand_in

_SIZES = (0, 1, -1, 37, 128)  # added to one size at a time, wherever it stands
_VALUES = ("as given", "normal", "large", "negative", "equal")


def distinguishing(file: str, right: str, wrong: str, kernel: str, calls: Sequence[Call]) -> str:
    """Return an input on which two texts of a kernel differ, in words; '' where none of those tried does."""
    with stand_in("always"):
        first, second = (getattr(module_of_text(file, text), kernel) for text in (right, wrong))
        for call in calls:
            for said, args, kwargs in _inputs(call):
                wanted = _results(first, call, args, kwargs)
                is_right = not isinstance(wanted, str) and not wanted[1]  # an input that the kernel is made for
                if is_right and _differ(wanted, _results(second, call, args, kwargs)):
                    return said
    return ""


def _inputs(call: Call) -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    names = dict(_named(call))
    sizes = sorted({size for array in names.values() for size in array.shape if size > 1})
    for old in [0, *sizes]:
        for more in _SIZES if old else (0,):
            if old and (not more or old + more < 1):
                continue
            for fill in _VALUES if not old else ("normal",):
                made = {id(each): _other(each, old, old + more, fill, at) for at, each in enumerate(names.values())}
                args, kwargs = _replaced((call.args, call.kwargs), made)
                shown = ", ".join(
                    f"{name} {made[id(each)].dtype}{list(made[id(each)].shape)}" for name, each in names.items()
                )
                yield f"{shown}; values {fill}", args, kwargs


def _named(call: Call) -> Iterator[tuple[str, Any]]:
    for number, value in enumerate(call.args):
        if isinstance(value, np.ndarray):
            yield f"argument {number}", value
    for name, value in call.kwargs.items():
        if isinstance(value, np.ndarray):
            yield name, value


def _other(array: Any, old: int, new: int, fill: str, seed: int) -> Any:
    """Return an array in which each size ``old`` is ``new``, with other values."""
    shape = tuple(new if size == old and old else size for size in array.shape)
    if fill == "as given" and shape == array.shape:
        return array
    random = np.random.default_rng(seed)
    if array.dtype.kind in "iu" or array.dtype.names is not None:  # indices, say, stay what they may be
        return np.resize(array, shape)
    values = random.standard_normal(shape, np.float32)
    others = {"large": 100 * values, "negative": -np.abs(values) - 1, "equal": np.ones(shape, np.float32)}
    values = others.get(fill, values)
    return values.astype(array.dtype)


def _replaced(value: Any, made: dict[int, Any]) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(_replaced(each, made) for each in value)
    if isinstance(value, dict):
        return {key: _replaced(each, made) for key, each in value.items()}
    return made.get(id(value), value)


def _results(kernel: Any, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return a kernel's results and the rules that it breaks; the name of the error that it raises."""
    from nkitools.launch.simulate import simulate

    own, named = copied((args, kwargs))
    try:
        run = simulate(kernel, *own, grid=call.grid, chip=call.chip, rules="report", replay="off", **named)
    except Exception as error:
        return type(error).__name__
    arrays = [array for _, (_, array) in (*arrays_in("output", run.outputs), *arrays_in("argument", own))]
    errors = sorted({each.rule for each in run.findings if each.severity == "error"})
    return arrays, errors


def _differ(first: Any, second: Any) -> bool:
    """Return whether two kernels have other results, in any element, or break other rules."""
    if isinstance(second, str) or first[1] != second[1] or len(first[0]) != len(second[0]):
        return True
    return not all(compared(mine, other, EXACT).agree for mine, other in zip(first[0], second[0], strict=True))
