"""The settings of a kernel, by name: values for its keywords, and for constants of its module and of its file."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial, wraps
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nkitools.chip.argument_types import Kernel

VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_NUMBERS = (bool, int, float, tuple, list, dict)
GENERATOR = "rng"
"""The parameter of a function of arguments that is a generator of random numbers."""


def settings_of(texts: Iterable[str]) -> dict[str, Any]:
    """Return the values of texts NAME=VALUE by their names: Python's literals, else texts.

    ValueError for another text, and for a name that is there twice.
    """
    found: dict[str, Any] = {}
    for each in texts:
        name, separator, value = (part.strip() for part in each.partition("="))
        if not separator or not name.isidentifier():
            raise ValueError(f"{each}: write NAME=VALUE")
        if name in found:
            raise ValueError(f"{name} is set twice: name one value")
        try:
            found[name] = ast.literal_eval(value)
        except (SyntaxError, ValueError):
            found[name] = value
    return found


def texts_of(settings: Mapping[str, Any]) -> list[str]:
    """Return settings as `settings_of` reads them, for another process: JSON has no tuples."""
    return [f"{name}={value!r}" for name, value in settings.items()]


def keywords_of(kernel: Kernel, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the values whose names are parameters of the kernel."""
    parameters = {each.name for each in parameters_of(kernel) if each.kind not in VARIABLE}
    return {name: value for name, value in values.items() if name in parameters}


def with_keywords(
    kernel: Kernel, args: tuple[Any, ...], kwargs: Mapping[str, Any], values: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call with those of the values that are keywords of the kernel in place of its own."""
    keywords = keywords_of(kernel, values)
    positional = [each.name for each in parameters_of(kernel) if each.kind not in VARIABLE][: len(args)]
    own = tuple(keywords.pop(name, value) for name, value in zip(positional, args, strict=False))
    return (*own, *args[len(own) :]), {**kwargs, **keywords}


def without_settings(function: Any, settings: Mapping[str, Any]) -> Any:
    """Return a function that is called without the settings that it has no parameters for; arrays as they are."""
    parameters = parameters_of(function) if callable(function) else []
    if not parameters or any(each.kind is each.VAR_KEYWORD for each in parameters):
        return function
    foreign = set(settings) - {each.name for each in parameters}

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **{name: value for name, value in kwargs.items() if name not in foreign})

    return called


def with_generator(function: Any, case: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a case with a generator of random numbers where a function needs one that the case does not have."""
    needs = any(each.name == GENERATOR and each.default is each.empty for each in parameters_of(function))
    if GENERATOR in case or not needs:
        return case
    import numpy as np

    return {**case, GENERATOR: np.random.default_rng(0)}


def parameters_of(function: Any) -> list[inspect.Parameter]:
    """Return the parameters of a function; [] if Python does not know them."""
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []


def constants_of(kernel: Any) -> dict[str, Any]:
    """Return the names of the module that a kernel is defined in, as they are; none for an operator."""
    inner = innermost(kernel)
    function = inner if isinstance(inner, FunctionType) else inspect.getattr_static(type(inner), "__call__", None)
    found: dict[str, Any] = getattr(function, "__globals__", {})
    return {} if str(found.get("__name__", "")).startswith("nkitools.") else found


@contextmanager
def constants_set(kernel: Kernel, values: Mapping[str, Any], *others: dict[str, Any]) -> Iterator[None]:
    """Give constants of the kernel's module other values: those of the values that are no parameters of the kernel.

    ``others``: the names of other modules, whose constants of the same names follow. ValueError for a name that is
    neither. The former values come back at the end.
    """
    spaces = [constants_of(kernel), *others]
    keywords = keywords_of(kernel, values)
    changed = {name: value for name, value in values.items() if name not in keywords}
    for name in changed:
        if not any(name in space for space in spaces):
            raise ValueError(f"{name} is no parameter of the kernel and no constant of its module")
    former = [(space, name, space[name]) for name in changed for space in spaces if name in space]
    for space, name, _ in former:
        space[name] = changed[name]
    try:
        yield
    finally:
        for space, name, value in reversed(former):
            space[name] = value


def check_setting(name: str, value: Any, former: Any) -> None:
    """ValueError for a text in the place of a number, and for a function or a module, which no setting replaces."""
    if name.startswith("__") or isinstance(innermost(former), (ModuleType, FunctionType, BuiltinFunctionType)):
        raise ValueError(f"{name} is {type(former).__name__}, and no constant that can be set")
    if isinstance(former, _NUMBERS) and isinstance(value, str):
        raise ValueError(f"{name} is {former!r}, and {value!r} is no literal of Python that could replace it")


def innermost(value: object) -> object:
    """Return the innermost function: the last of `layers`."""
    *_, last = layers(value)
    return last


def layers(value: object) -> Iterator[object]:
    """Yield an object and what it calls: the function of a partial, of a method, of a decorator that says it."""
    while True:
        yield value
        if isinstance(value, partial):
            value = value.func
        elif isinstance(value, MethodType):
            value = value.__func__
        elif hasattr(value, "__wrapped__"):
            value = value.__wrapped__
        else:
            return
