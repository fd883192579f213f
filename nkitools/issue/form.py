"""The form of an instruction: its parameters and their roles, and how a call's arguments become a plan's key."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from enum import Enum
from functools import cached_property
from typing import Any, TypeVar

from nkitools.chip.core import Core
from nkitools.chip.tensor import NkiTensor
from nkitools.issue.plan import DATA, LABEL, ROLES, SOURCES, SRC, STATIC, Check, Plan

AnyCheck = TypeVar("AnyCheck", bound=Check)
AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Plan])


def takes_64_bits(function: AnyFunction) -> AnyFunction:
    """Mark the function of an instruction that moves integers of 64 bits; all other instructions refuse them."""
    function.takes_64_bits = True  # type: ignore[attr-defined]
    return function


class InstructionForm:
    """The facts about an instruction before it is called."""

    def __init__(self, function: Callable[..., Plan]) -> None:
        self.function = function
        self.name = function.__name__
        self.takes_64_bits = getattr(function, "takes_64_bits", False)
        self.touches_in_part = False  # it has had a plan that touches not all of its operands
        signature = inspect.signature(function)
        self.form = list(signature.parameters.values())[1:]
        bare = [parameter.replace(annotation=parameter.empty) for parameter in self.form]
        self.signature = signature.replace(parameters=bare, return_annotation=signature.empty)
        self.parameters = tuple(parameter.name for parameter in self.form)
        self.roles = tuple(_role(parameter) for parameter in self.form)
        self.exchanges = "recv_from_rank" in self.parameters  # it takes both cores, and waits for the other one
        self._classed = tuple(is_classed(parameter) for parameter in self.form)
        self._sequences = tuple(may_be_sequence(parameter) for parameter in self.form)

    def check(self, core: Core, kind: type[AnyCheck]) -> AnyCheck:
        """Return the `Check` for the guards of this instruction."""
        call_form = (lambda: self.call_form) if core.dialect.shows_call_form else str
        return kind(self.name, core.generation, core.language, call_form, sums_in_order=core.sums_in_order)

    def flat(self, values: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[int, ...]]:
        """Return the arguments and their roles, with each tensor of a list as an input of its own."""
        if SOURCES not in self.roles:
            return values, self.roles
        flat: list[tuple[Any, int]] = []
        for value, role in zip(values, self.roles, strict=True):
            flat += [(each, SRC) for each in value] if role == SOURCES else [(value, role)]
        return tuple(value for value, _ in flat), tuple(role for _, role in flat)

    def names(self, values: tuple[Any, ...]) -> tuple[str, ...]:
        """Return the names of the arguments; each tensor of a list gets its number."""
        names: list[str] = []
        for name, value, role in zip(self.parameters, values, self.roles, strict=True):
            names += [f"{name}[{number}]" for number in range(len(value))] if role == SOURCES else [name]
        return tuple(names)

    def key(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the key of a call's plan: the fast path's; of a list also which tensors are the destination."""
        key: list[Any] = [self]
        for value, role, classed, sequence in zip(values, self.roles, self._classed, self._sequences, strict=True):
            if role == SOURCES:
                key.append(tuple((each.form, each.same_place(values[0])) for each in value))
            elif role in DATA:
                key.append(value.form if isinstance(value, NkiTensor) else type(value))
            elif role == STATIC:
                key += (type(value), value) if classed else (value,)
                if sequence:
                    key.append(repr(value) if type(value) is tuple and value else None)
        return tuple(key)

    def frozen(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments with static ones as something that can be hashed."""
        return tuple(value if role in DATA else _freeze(value) for value, role in zip(values, self.roles, strict=True))

    def argument(self, name: str, values: tuple[Any, ...]) -> Any:
        """Return the argument of this name; None if the instruction has no such parameter."""
        return values[self.parameters.index(name)] if name in self.parameters else None

    @cached_property
    def call_form(self) -> str:
        """The signature, as a remedy shows it."""
        return self.form_of(self.signature)

    def form_of(self, signature: inspect.Signature) -> str:
        """Return a sentence with the call form of a signature."""
        return f"The call form is nisa.{self.name}{written_signature(signature)}."


def written_signature(signature: inspect.Signature) -> str:
    """Return a signature with members of enums as they are written: ``nisa.engine.vector``."""
    # A function in the place of a template, which would be parsed at the first instruction of a process.
    return re.sub(r"<(\w+\.\w+): [^>]*>", lambda found: f"nisa.{found[1]}", str(signature))


def is_classed(parameter: inspect.Parameter) -> bool:
    """Return whether a static argument's class is part of the key: 1, 1.0 and True are equal, but different arguments.

    Operator tokens and enum members do not need it.
    """
    return not (isinstance(parameter.default, Enum) or parameter.name.startswith(("op", "reduce_op")))


def may_be_sequence(parameter: inspect.Parameter) -> bool:
    """Return whether a static argument may be a tuple, whose text must then be part of the key.

    (1, 2) and (1.0, 2) are equal, but different arguments.
    """
    return any(kind in str(parameter.annotation) for kind in ("Sequence", "tuple", "Pattern"))


def _freeze(value: Any) -> Any:
    """Return a static argument as something that can be hashed."""
    if isinstance(value, (list, tuple)):
        return tuple(_freeze(item) for item in value)
    return value


def _role(parameter: inspect.Parameter) -> int:
    if parameter.name == "name":
        return LABEL
    return ROLES.get(str(parameter.annotation), STATIC)
