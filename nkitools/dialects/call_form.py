"""Wrong, missing and unknown arguments of a dialect's functions are findings (NK609), not bare TypeErrors."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any, NoReturn

from nkitools.rules.finding import refuse


def with_call_forms(prefix: str, names: dict[str, Any]) -> dict[str, Any]:
    """The plain functions among ``names``, each refusing a call that its signature does not take."""
    return {name: _checked(prefix, name, value) for name, value in names.items() if isinstance(value, FunctionType)}


def _checked(prefix: str, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            # Binding fails before the function has a frame: what is raised inside of it is another matter.
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise
            wrong = error
        _wrong_call(f"{prefix}.{name}", function, wrong)

    return checked


def _wrong_call(name: str, function: Callable[..., Any], error: TypeError) -> NoReturn:
    form = str(inspect.signature(function)).replace("'", "")
    text = str(error).replace(f"{function.__qualname__}()", f"{name}()")
    refuse("NK609", text, remedy=f"The call form is {name}{form}.")
