"""The form of a call for JSON: its arguments without the elements of arrays.

An array is ``{"dtype", "shape"}``, with ``low`` and ``high`` if its elements are whole numbers, which may be indices. A
list, tuple or dictionary is ``{"list"|"tuple"|"dict": parts}``, a number, text or None ``{"value": it}``, and anything
else ``{"other": its text}``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

from nkitools.chip.argument_types import Argument, FrameworkArray, Kernel
from nkitools.launch.frameworks import framework_of

_PLAIN = (bool, int, float, str, type(None))


def call_form(function: Kernel, args: Sequence[Argument], kwargs: dict[str, Argument]) -> dict[str, Any]:
    """Return the form of a call, with the place of the kernel's function."""
    code = getattr(function, "__code__", None)
    return {
        "function": getattr(function, "__name__", ""),
        "file": "" if code is None else code.co_filename,
        "line": 0 if code is None else code.co_firstlineno,
        "args": [_form(each) for each in args],
        "kwargs": {name: _form(each) for name, each in kwargs.items()},
    }


def _form(value: Argument) -> dict[str, Any]:
    framework = framework_of(value)
    if framework is not None:
        array = framework.to_numpy("", cast("FrameworkArray", value))
        form: dict[str, Any] = {"dtype": array.dtype.name, "shape": list(array.shape)}
        if array.dtype.kind in "iu" and array.size:
            form |= {"low": int(array.min()), "high": int(array.max())}
        return form
    if isinstance(value, dict):
        return {"dict": {str(name): _form(each) for name, each in value.items()}}
    if isinstance(value, (list, tuple)):
        return {type(value).__name__ if type(value) in (list, tuple) else "tuple": [_form(each) for each in value]}
    if isinstance(value, _PLAIN) and not (isinstance(value, float) and not math.isfinite(value)):
        return {"value": value}
    return {"other": repr(value)}
