"""An edited function in the place of the author's own, without another execution of the file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType

from nkitools.authors_code.source_text import alone, compiled_again, is_alike, keep_text, running, text_of


@contextmanager
def in_place(function: FunctionType, text: str) -> Iterator[None]:
    """Let a function run as another text of its file has it, while the block runs.

    ``text`` is that of the whole file, with an edit inside of the function. Raises ValueError if the file no longer
    holds the function, and if the edit reads or leaves out a variable of a function around it.
    """
    code = function.__code__
    before, text = alone(text_of(code), code.co_firstlineno, text)
    made = compiled_again(code, before, text)
    if made is None:
        raise ValueError(f"{code.co_filename} does not hold {function.__qualname__} as it runs")
    if not is_alike(made, code):
        raise ValueError(f"the edit changes which variables {function.__qualname__} has of the functions around it")
    keep_text(made, text)
    with running([(function, made)]):
        forget_traces(function)
        try:
            yield
        finally:
            forget_traces(function)
            text_of(code)  # findings show the author's lines again


def forget_traces(function: FunctionType) -> None:
    """Let JAX trace functions again: from 0.12 on it knows a kernel by its function, whatever code that has.

    JAX traces no function of a module that names NKI and does not name JAX.
    """
    jax = sys.modules.get("jax")
    if jax is not None:
        names = {_home(each) for each in list(function.__globals__.values())}
        if "jax" in names or names.isdisjoint(("nki", "neuronxcc", "nkitools")):
            jax.clear_caches()


def _home(value: object) -> str:
    """Return the package of a module, a function or a class."""
    name = getattr(value, "__module__", None) or getattr(value, "__name__", None)
    return str(name).partition(".")[0]
