"""A variant of a kernel: values for its keywords, or for constants of its module."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from nkitools.chip.argument_types import Kernel


def keywords_of(kernel: Kernel, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the values whose names are parameters of the kernel."""
    parameters = inspect.signature(kernel).parameters
    return {name: value for name, value in values.items() if name in parameters}


@contextmanager
def constants_set(kernel: Kernel, values: Mapping[str, Any]) -> Iterator[None]:
    """Give constants of the kernel's module other values, those of the values that are no parameters of the kernel.

    ValueError for a name that is neither. The former values come back at the end.
    """
    constants: dict[str, Any] = inspect.unwrap(kernel).__globals__
    keywords = keywords_of(kernel, values)
    changed = {name: value for name, value in values.items() if name not in keywords}
    for name in changed:
        if name not in constants:
            raise ValueError(f"{name} is no parameter of the kernel and no constant of its module")
    former = {name: constants[name] for name in changed}
    constants.update(changed)
    try:
        yield
    finally:
        constants.update(former)
