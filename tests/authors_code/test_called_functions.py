"""The values and functions that an author's function names."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from nkitools.authors_code.called_functions import NamedFunctions, function_called, named_functions, plain_function
from nkitools.authors_code.known_modules import is_installed
from nkitools.authors_code.named_values import attributes_named, globals_named, names_in, variables_around

SCALE = 3


def double(x: int) -> int:
    return 2 * x


def traced(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def inner(*args: Any) -> Any:
        return function(*args)

    return inner


class Layer:
    def __init__(self) -> None:
        self.scale = SCALE

    def apply(self, x: int) -> int:
        return double(x) * self.scale

    def __call__(self, x: int) -> int:
        return self.apply(x)

    def unused(self, x: int) -> int:
        return x


@traced
def kernel(x: int) -> float:
    def inside(y: int) -> float:
        return math.sqrt(y) + SCALE

    return inside(Layer().apply(x)) + np.pi


def test_names_are_those_of_inner_functions_too() -> None:
    """In the order in which the code has them, each once; builtins have no value among the globals."""
    function = plain_function(kernel)
    assert function is not None
    assert [*names_in(function.__code__)] == ["Layer", "apply", "np", "pi", "math", "sqrt", "SCALE"]
    assert globals_named(function) == {"Layer": Layer, "np": np, "math": math, "SCALE": 3}
    assert attributes_named(math, names_in(function.__code__)) == {"sqrt": math.sqrt, "pi": math.pi}


def test_variables_around_a_function_have_values() -> None:
    """A variable that is not bound yet is left out."""

    def inner() -> Any:
        return first, later

    first = 1
    before = variables_around(inner)
    later = 2
    assert (before, variables_around(inner)) == ({"first": 1}, {"first": 1, "later": 2})


def test_functions_are_found_through_decorators_classes_and_methods() -> None:
    """Those of the author only, each once; of a class the methods whose names occur, and what makes an object."""
    function = plain_function(kernel)
    assert function is not None
    names = sorted(each.__qualname__ for each in named_functions(function))
    assert names == ["Layer.__init__", "Layer.apply", "double", "kernel"]


def test_the_function_that_a_call_runs() -> None:
    """Of a function, a method, a partial, a decorated one and an object; of Python's own there is none."""
    layer = Layer()
    called = [double, layer.apply, functools.partial(double, 1), traced(double), layer, len, 3]
    names = [getattr(function_called(each), "__qualname__", None) for each in called]
    assert names == ["double", "Layer.apply", "double", "double", "Layer.__call__", None, None]


def test_files_of_packages_are_not_the_authors() -> None:
    """Python's own, those of this environment and of another one; a folder whose name is alike is the author's."""
    installed = (np.__file__, functools.__file__, "/home/a/lib/site-packages/b/c.py", "<frozen importlib._bootstrap>")
    assert all(map(is_installed, installed))
    assert not any(map(is_installed, (__file__, "/home/a/my-site-packages-notes/c.py", "<string>")))


def test_changed_names_and_codes_are_noticed() -> None:
    """The functions that a function names are the same tuple until a name, a code or a wrapped function changes."""
    source = "def first(): return 1\ndef other(): return 2\ndef kernel(): return first()\n"
    space: dict[str, Any] = {"__name__": "authors"}
    exec(source, space)
    named = NamedFunctions(space["kernel"])
    assert named.now() == (space["kernel"], space["first"])
    assert named.now() is named.now()
    first = space["first"]
    space["first"] = space["other"]
    assert named.now() == (space["kernel"], space["other"])
    space["first"] = functools.partial(first)
    assert named.now() == (space["kernel"], first)
    assert named.now() is named.now()
    space["other"].__wrapped__ = first
    space["first"] = space["other"]
    before = named.now()
    assert before == (space["kernel"], first)
    del space["other"].__wrapped__
    assert named.now() == (space["kernel"], space["other"])
    space["other"].__code__ = (lambda: 3).__code__
    after = named.now()
    assert after == (space["kernel"], space["other"])
    assert after is named.now()


def test_methods_of_a_class_and_variables_around_are_looked_at_each_time() -> None:
    """A method that is set later, and an enclosing function's variable, count at once."""
    source = "class Named:\n    def __init__(self): pass\ndef kernel(): return Named()\ndef other(self): pass\n"
    space: dict[str, Any] = {"__name__": "authors"}
    exec(source, space)
    named = NamedFunctions(space["kernel"])
    assert named.now() == (space["kernel"], space["Named"].__init__)
    space["Named"].__init__ = space["other"]
    assert named.now() == (space["kernel"], space["other"])

    def around() -> Any:
        called = space["other"]

        def inner() -> Any:
            return called

        def change() -> None:
            nonlocal called
            called = space["kernel"]

        return inner, change

    inner, change = around()
    named = NamedFunctions(inner)
    assert named.now() == (inner, space["other"])
    assert named.now() is named.now()
    change()
    assert named.now()[:2] == (inner, space["kernel"])
