"""An input that tells a mutant from the kernel: the arguments of the author's tests in other sizes and values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any

import numpy as np

from nkitools.chip.dtypes import as_dtype
from nkitools.comparison.compared_arrays import compared
from nkitools.comparison.rule import EXACT
from nkitools.launch.frameworks import NUMPY, framework_of
from nkitools.launch.nested_arguments import mapped
from nkitools.precision.difference import Difference, exact
from nkitools.precision.runs import arrays_in, copied
from nkitools.sweeps.tests_of_author import Call, module_of_text
from nkitools.targets.imports import stand_in

_SIZES = (0, 1, -1, 37, 128)  # added to one size at a time, wherever it stands
_VALUES = ("as given", "normal", "large", "negative", "equal")


def distinguishing(file: str, right: str, wrong: str, kernel: str, calls: Sequence[Call]) -> str:
    """Return in words an input on which two versions of a kernel differ; '' if no tried input shows it."""
    with stand_in("always"):
        first, second = (getattr(module_of_text(file, text), kernel) for text in (right, wrong))
        for call in calls:
            for said, args, kwargs in _inputs(call, _parameters(first)):
                wanted = _results(first, call, args, kwargs)
                if isinstance(wanted, str) or wanted.errors:
                    continue  # no input that the kernel is made for
                found = _results(second, call, args, kwargs)
                if not wanted.is_same(found):
                    return f"{said}{_apart(wanted, found)}"
    return ""


def _parameters(kernel: Any) -> list[str]:
    """Return the names of a kernel's parameters, as far as positions have them."""
    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    return [each.name for each in signature(kernel).parameters.values() if each.kind in positional]


def _inputs(call: Call, parameters: list[str]) -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    found = list(_named(call, parameters))
    names = {name: array for name, _, array in found}
    parts = {id(part): name for name, part, _ in found}
    sizes = sorted({size for array in names.values() for size in array.shape if size > 1})
    for old in [0, *sizes]:
        for more in _SIZES if old else (0,):
            if old and (not more or old + more < 1):
                continue
            for fill in _VALUES if not old else ("normal",):
                made = {name: _other(each, old, old + more, fill, at) for at, (name, each) in enumerate(names.items())}
                shown = ", ".join(f"{name} {each.dtype}{list(each.shape)}" for name, each in made.items())
                yield _said(shown, fill, is_own=not old), *_replaced(call, parts, made)


def _said(shown: str, fill: str, *, is_own: bool) -> str:
    if is_own and fill == "as given":
        return f"the tests' own arguments, which no assertion notices ({shown})"
    return f"{shown}; values {fill}"


def _named(call: Call, parameters: list[str]) -> Iterator[tuple[str, Any, Any]]:
    """Yield the arrays of a call: each with its name, as it is, and as NumPy sees it."""
    for number, value in enumerate(call.args):
        said = parameters[number] if number < len(parameters) else f"argument {number}"
        yield from ((name, *pair) for name, pair in arrays_in(said, value))
    for name, value in call.kwargs.items():
        yield from ((each, *pair) for each, pair in arrays_in(name, value))


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


def _replaced(call: Call, parts: dict[int, str], made: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call with other arrays, in the framework of each."""

    def part(each: Any) -> Any:
        framework = framework_of(each)
        if framework is None or framework is NUMPY:
            return each if framework is None else made[parts[id(each)]]
        array = made[parts[id(each)]]
        return framework.from_numpy(array, as_dtype(array.dtype))

    args, kwargs = mapped((call.args, call.kwargs), part)
    return args, kwargs


def _apart(wanted: Results, found: Results | str) -> str:
    """Return in words how the results of two versions differ: their errors, rules or shapes, else by how much."""
    if isinstance(found, str):
        return f"; with the mistake it raises {found}"
    if broken := sorted(set(found.errors) - set(wanted.errors)):
        return f"; with the mistake it breaks {', '.join(broken)}"
    if [each.shape for each in wanted.arrays] != [each.shape for each in found.arrays]:
        return f"; the shapes differ: {_shapes(wanted)} becomes {_shapes(found)}"
    pairs = zip(wanted.arrays, found.arrays, strict=True)
    furthest = max((Difference.of(exact(one), exact(other)).max_abs for one, other in pairs if one.size), default=0.0)
    return f"; off by up to {furthest:.3g}"


def _shapes(results: Results) -> str:
    return ", ".join(str(list(each.shape)) for each in results.arrays)


@dataclass(frozen=True, eq=False)
class Results:
    """The arrays that a kernel has made or changed, and the rules that it has broken."""

    arrays: list[Any]
    errors: list[str]

    def is_same(self, other: Results | str) -> bool:
        """Return whether other results have equal elements and the same broken rules."""
        if isinstance(other, str) or self.errors != other.errors or len(self.arrays) != len(other.arrays):
            return False
        pairs = zip(self.arrays, other.arrays, strict=True)
        return all(compared(one, another, EXACT).agree for one, another in pairs)


def _results(kernel: Any, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Results | str:
    """Return the results of a kernel, or the name of the error that it raises."""
    from nkitools.launch.simulate import simulate

    own, named = copied((args, kwargs))
    try:
        run = simulate(kernel, *own, grid=call.grid, chip=call.chip, rules="report", **named)
    except Exception as error:
        return type(error).__name__
    arrays = [array for _, (_, array) in (*arrays_in("output", run.outputs), *arrays_in("argument", own))]
    errors = sorted({each.rule for each in run.findings if each.severity == "error"})
    return Results(arrays, errors)
