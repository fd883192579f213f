"""What makes a function an instruction: the call form, and a plan kept for each combination.

An instruction's function runs when a combination of everything its guards look at is met for the first time. It checks
(guards), builds what to compute (meaning) and says what that costs, and returns all as a `Plan`. The plan is kept and
looked up from then on, so that a call costs a dictionary lookup beside NumPy's own work.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from nkitools.chip.core import CORE, Core, current_core
from nkitools.chip.dynamic import DynamicTensor, OutOfBounds
from nkitools.chip.registers import VirtualRegister
from nkitools.chip.tensor import NkiTensor
from nkitools.isa import indirection
from nkitools.isa.enums import oob_mode
from nkitools.isa.execution import execute
from nkitools.isa.fast_path import binder, is_classed, issuer
from nkitools.isa.plan import (
    DATA,
    LABEL,
    OPERAND,
    OPTIONAL_DST,
    OPTIONAL_OPERAND,
    REGISTER,
    REGISTER_OR_NUMBER,
    ROLES,
    SOURCES,
    SRC,
    STATIC,
    WRITTEN,
    Check,
    Dst,
    Operand,
    OptionalDst,
    OptionalOperand,
    Plan,
    Src,
)
from nkitools.rules.finding import refuse

__all__ = [
    "Check",
    "Dst",
    "Instruction",
    "NkiInstruction",
    "Operand",
    "OptionalDst",
    "OptionalOperand",
    "Plan",
    "Src",
    "instruction",
]

_NUMBERS = (int, float, np.generic)
_WHOLE = (int, np.integer)
_WANTED = {
    OPERAND: "a number or a tensor",
    OPTIONAL_OPERAND: "a number or a tensor",
    REGISTER: "a register of nisa.register_alloc",
    REGISTER_OR_NUMBER: "an integer or a register of nisa.register_alloc",
    SOURCES: "a list of tensors",
}


class NkiInstruction:
    """The handle of an issued instruction. Instructions run in program order here: a dependence changes no result."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle

    def depends_on(self, *producers: NkiInstruction) -> NkiInstruction:
        """Let this instruction run after the producers; returns itself."""
        for producer in producers:
            if not isinstance(producer, NkiInstruction):
                refuse("NK609", f"depends_on takes the handles of instructions, it is given {type(producer).__name__}")
        return self


_HANDLE = NkiInstruction(None)


def _freeze(value: Any) -> Any:
    """A static argument as something that can be hashed."""
    if isinstance(value, (list, tuple)):
        return tuple(_freeze(item) for item in value)
    return value


class Instruction:
    """One instruction: callable in both modern call forms, positional and by keyword."""

    def __init__(self, function: Callable[..., Plan]) -> None:
        self.function = function
        self.name = function.__name__
        self.__name__ = self.__qualname__ = function.__name__
        self.__doc__ = function.__doc__
        signature = inspect.signature(function)
        parameters = list(signature.parameters.values())[1:]
        bare = [parameter.replace(annotation=parameter.empty) for parameter in parameters]
        self.signature = self.__signature__ = signature.replace(parameters=bare, return_annotation=signature.empty)
        self.parameters = tuple(parameter.name for parameter in parameters)
        self.roles = tuple(_role(parameter) for parameter in parameters)
        self._classed = tuple(is_classed(parameter) for parameter in parameters)
        self._bind = binder(parameters)
        self._issue = issuer(self, parameters, self.roles)

    def __repr__(self) -> str:
        return f"<instruction nisa.{self.name}{self.signature}>"

    def __call__(self, *args: Any, **kwargs: Any) -> NkiInstruction:
        core = CORE.get()
        if core is None:
            core = current_core(f"nisa.{self.name}")
        try:
            values = self._bind(*args, **kwargs)
        except TypeError as error:
            values, wrong = None, error
        if values is None:  # outside of the except clause, so that the finding does not drag the TypeError along
            self._wrong_call(wrong)
        self._issue(core, values)
        return _HANDLE

    def issue_carefully(self, core: Core, values: tuple[Any, ...]) -> None:
        """Issue what the fast path does not take."""
        values = tuple(
            value if role in DATA else _freeze(value) for value, role in zip(values, self.roles, strict=True)
        )
        self._check_arguments(values)
        operands, roles = self._flat(values)
        skip = self._skips(values)
        if not self._settled(operands, skip=skip):
            return
        aimed = Check(self.name, core.generation) if indirection.used_in(operands) else None
        arguments = dict(zip(self.parameters, values, strict=True)) if aimed is not None else {}
        if aimed is not None:
            indirection.check_operands(aimed, arguments)
        key = self._key(values)
        plan = core.plans.get(key)
        if plan is None:
            check = Check(self.name, core.generation)
            plan = self.function(check, *values)
            plan.name = self.name
            plan.written = tuple(
                role in WRITTEN
                for value, role in zip(operands, roles, strict=True)
                if role in DATA and isinstance(value, NkiTensor)
            )
            plan.number()
            if not check.broken:
                core.plans[key] = plan
        if aimed is not None:
            indirection.use(aimed, arguments, plan)
        words = execute(core, plan, roles, operands, skip=skip)
        if aimed is not None:
            indirection.done(arguments)
        core.record.issued(plan, core.record.sites.current(4), words)

    def _flat(self, values: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[int, ...]]:
        """The arguments and their roles, with each tensor of a list as an input of its own."""
        if SOURCES not in self.roles:
            return values, self.roles
        flat: list[tuple[Any, int]] = []
        for value, role in zip(values, self.roles, strict=True):
            flat += [(each, SRC) for each in value] if role == SOURCES else [(value, role)]
        return tuple(value for value, _ in flat), tuple(role for _, role in flat)

    def _settled(self, values: tuple[Any, ...], *, skip: bool) -> bool:
        """Move views with a run-time address to where it is now; False where that is out of bounds and skipped."""
        for value in values:
            if isinstance(value, DynamicTensor):
                try:
                    value.settle(f"nisa.{self.name}")
                except OutOfBounds as error:
                    if skip:
                        return False
                    refuse("NK402", f"{self.name}: {error}", about=(value,))
        return True

    def _skips(self, values: tuple[Any, ...]) -> bool:
        """Whether the call says to skip what is out of bounds."""
        return "oob_mode" in self.parameters and values[self.parameters.index("oob_mode")] is oob_mode.skip

    def _key(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """The same key as the fast path's, where that takes the operands; of a list also which are the destination."""
        key: list[Any] = [self]
        for value, role, classed in zip(values, self.roles, self._classed, strict=True):
            if role == SOURCES:
                key.append(tuple((each.form, each.same_place(values[0])) for each in value))
            elif role in DATA:
                key.append(value.form if isinstance(value, NkiTensor) else type(value))
            elif role == STATIC:
                key += (type(value), value) if classed else (value,)
        return tuple(key)

    def _check_arguments(self, values: tuple[Any, ...]) -> None:
        """NK609: tensors where tensors belong, numbers where numbers do, and nothing that cannot be part of a key."""
        for name, value, role in zip(self.parameters, values, self.roles, strict=True):
            if role in (STATIC, LABEL):
                self._check_static(name, value, role)
            elif role == SOURCES:
                if not isinstance(value, (list, tuple)) or not all(isinstance(each, NkiTensor) for each in value):
                    self._wrong_operand(name, value, role)
            elif not (
                (isinstance(value, NkiTensor) and role not in (REGISTER, REGISTER_OR_NUMBER))
                or (value is None and role in (OPTIONAL_DST, OPTIONAL_OPERAND))
                or (isinstance(value, _NUMBERS) and role in (OPERAND, OPTIONAL_OPERAND))
                or (isinstance(value, VirtualRegister) and role in (REGISTER, REGISTER_OR_NUMBER))
                or (isinstance(value, _WHOLE) and type(value) is not bool and role == REGISTER_OR_NUMBER)
            ):
                self._wrong_operand(name, value, role)

    def _check_static(self, name: str, value: Any, role: int) -> None:
        try:
            hash(value)
        except TypeError:
            refuse(
                "NK609",
                f"nisa.{self.name}: argument `{name}` cannot be {type(value).__name__}",
                remedy=self._call_form(),
            )
        if role == LABEL and not (value is None or isinstance(value, str)):
            refuse("NK609", f"nisa.{self.name}: argument `{name}` must be a string, it is {type(value).__name__}")

    def _wrong_operand(self, name: str, value: Any, role: int) -> NoReturn:
        wanted = _WANTED.get(role, "a tensor")
        hint = ""
        if isinstance(value, np.ndarray):
            hint = " NumPy arrays enter a kernel as its arguments."
        refuse(
            "NK609",
            f"nisa.{self.name}: argument `{name}` must be {wanted}, it is {type(value).__name__}",
            remedy=self._call_form() + hint,
        )

    def _wrong_call(self, error: TypeError) -> NoReturn:
        refuse("NK609", str(error).replace("_bound()", f"nisa.{self.name}()"), remedy=self._call_form())

    def _call_form(self) -> str:
        shown = re.sub(r"<(\w+)\.(\w+): [^>]*>", r"nisa.\1.\2", str(self.signature))
        return f"The call form is nisa.{self.name}{shown}."


def _role(parameter: inspect.Parameter) -> int:
    if parameter.name == "name":
        return LABEL
    return ROLES.get(str(parameter.annotation), STATIC)


def instruction(function: Callable[..., Plan]) -> Instruction:
    """Make a function that checks, plans and prices one combination into an instruction."""
    return Instruction(function)
