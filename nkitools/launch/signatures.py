"""The call form of kernels: their signatures, and arguments bound to them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from nkitools.rules.finding import refuse


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a kernel's function; NK609 where it has none (a builtin, a NumPy ufunc)."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        pass
    return refuse(
        "NK609",
        f"{function!r} has no signature, so that it cannot be a kernel",
        remedy="Write it as a Python function.",
    )


def bind(
    name: str, signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> inspect.BoundArguments:
    """The arguments by the names of their parameters; NK609 shows the signature that they do not fit."""
    try:
        return signature.bind(*args, **kwargs)
    except TypeError as error:
        sentence = str(error)
    # Outside of the handler, so that Python does not show the one error as the cause of the other.
    parameters = [parameter.replace(annotation=parameter.empty) for parameter in signature.parameters.values()]
    shown = signature.replace(parameters=parameters, return_annotation=signature.empty)
    return refuse("NK609", f"{name}: {sentence}", remedy=f"The kernel's call form is {name}{shown}.")
