"""The computation of one element as arithmetic with numbers: ``log(-1.0)``, ``0.0 / 0.0``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from nkitools.chip.argument_types import Number
from nkitools.engines.operators import ACTIVATIONS, OPERATORS, OperatorToken, token_name

# From the other arguments, the operands as they are shown, and their values.
Form = Callable[[Mapping[str, Any], Mapping[str, str], Mapping[str, Any]], str]

_INFIX = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}


def expression(instruction: str, settings: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    """Return the formula of a result with the operands' ``values``; unknown ones (None) appear by name.

    ``settings`` are the operators and other arguments.
    """
    shown = {name: name if value is None else _shown(value) for name, value in values.items()}
    form = _FORMS.get(instruction)
    if form is None:
        return ", ".join(f"{name} = {each}" for name, each in shown.items() if values[name] is not None)
    return form(settings, shown, values)


def _shown(value: Number) -> str:
    return str(np.float32(value))  # which is what the engines compute with


def _name(token: OperatorToken) -> str:
    for table in (OPERATORS, ACTIVATIONS):
        for name, each in table.items():
            if each is token:
                return name
    return token_name(token) or str(token)


def _binary(token: OperatorToken, left: str, right: str) -> str:
    name = _name(token)
    operator = OPERATORS.get(name)
    if operator is not None and operator.unary:
        return f"{name}({left})"
    if name == "bypass":
        return left
    return f"{_inner(left)} {_INFIX[name]} {_inner(right)}" if name in _INFIX else f"{name}({left}, {right})"


def _inner(text: str) -> str:
    return f"({text})" if " " in text and not text.endswith(")") else text


def _activation(settings: Mapping[str, Any], shown: Mapping[str, str], values: Mapping[str, Any]) -> str:
    inside = shown["data"]
    if values.get("scale") is None or values["scale"] != 1:
        inside = f"{inside} * {shown['scale']}"
    if "bias" in shown and (values["bias"] is None or values["bias"] != 0) and shown["bias"] != "bias":
        inside = f"{inside} + {shown['bias']}"
    return f"{_name(settings['op'])}({inside})"


def _steps(settings: Mapping[str, Any], shown: Mapping[str, str], values: Mapping[str, Any]) -> str:
    text = shown["data"]
    for number in (0, 1):
        token = settings.get(f"op{number}")
        if token is not None:
            pair = (text, shown.get(f"operand{number}", ""))
            text = _binary(token, *(pair[::-1] if settings.get(f"reverse{number}") else pair))
    return text


_FORMS: dict[str, Form] = {
    "activation": _activation,
    "activation_reduce": _activation,
    "tensor_tensor": lambda settings, shown, values: _binary(settings["op"], shown["data1"], shown["data2"]),
    "tensor_scalar": _steps,
    "tensor_scalar_reduce": _steps,
    "scalar_tensor_tensor": _steps,
    "reciprocal": lambda settings, shown, values: f"1.0 / {shown['data']}",
    "tensor_copy": lambda settings, shown, values: shown["src"],
    "dma_copy": lambda settings, shown, values: shown["src"],
}
