"""What makes a function an instruction: the call form, and a plan kept for each combination.

An instruction's function runs when a combination of everything its guards look at is met for the first time. It checks
(guards), builds what to compute (meaning) and says what that costs, and returns all as a `Plan`. The plan is kept and
looked up from then on, so that a call costs a dictionary lookup beside NumPy's own work.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from functools import cached_property
from typing import Any, NoReturn, TypeVar

import numpy as np

from nkitools.chip.core import CORE, Core, current_core
from nkitools.chip.registers import VirtualRegister
from nkitools.chip.runtime_views import DynamicTensor, OutOfBounds
from nkitools.chip.tensor import NkiTensor
from nkitools.engines.enums import oob_mode
from nkitools.engines.operators import ACTIVATIONS, OPERATORS, is_operator_name, is_token
from nkitools.issue import indirection
from nkitools.issue.execution import execute
from nkitools.issue.fast_path import binder, is_classed, issuer
from nkitools.issue.full_precision import in_full_precision
from nkitools.issue.instruction_names import label
from nkitools.issue.plan import (
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
from nkitools.issue.refused_instructions import follow, leave_undone, refuse_undefined_places
from nkitools.record.source_sites import is_internal
from nkitools.rules.catalogue import removed_argument
from nkitools.rules.finding import StopRun, refuse

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


AnyCheck = TypeVar("AnyCheck", bound=Check)


class NkiInstruction:
    """The handle of an issued instruction: opaque to the author, here the loop on the device that it was issued in.

    Instructions run in program order here: a dependence changes no result.
    """

    def __init__(self, handle: Any) -> None:
        self.handle = handle

    def depends_on(self, *producers: NkiInstruction) -> NkiInstruction:
        """Let this instruction run after the producers; returns itself.

        A producer is in the same loop on the device or in one around it: the wait is compiled once and would else
        fire in every turn, or never. Errors: NK601, NK609. Source: nki.isa.NkiInstruction.depends_on (NKI 0.6).
        """
        for producer in producers:
            if not isinstance(producer, NkiInstruction):
                refuse(
                    "NK609",
                    f"depends_on takes the handles of instructions, it is given {type(producer).__name__}",
                    remedy="A handle is what a nki.isa call returns: later.depends_on(earlier).",
                )
            if producer.handle is not None and not producer.handle.holds(self.handle):
                refuse(
                    "NK601",
                    "depends_on: the producer was issued in a loop on the device that this instruction is not in",
                    remedy="Let an instruction wait for others of the same loop body, or for ones issued before it.",
                )
        return self


_HANDLE = NkiInstruction(None)


def _is_called_by_author() -> bool:
    """Whether the instruction that is being looked at was called from the author's file, not from a dialect's."""
    frame: Any = sys._getframe(1)
    while frame.f_code.co_filename == __file__ or frame.f_code.co_filename.startswith("<nkitools"):
        frame = frame.f_back
    return not is_internal(frame.f_code.co_filename)


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
        self._bind = binder(self.name, parameters)
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
        if core.record.open is not None:
            core.record.begin_instruction()
        try:
            self._issue(core, values)
        except StopRun:
            leave_undone(core, values, self.roles, waits="recv_from_rank" in self.parameters)
        return _HANDLE if core.device_loop is None else NkiInstruction(core.device_loop)

    def issue_carefully(self, core: Core, values: tuple[Any, ...]) -> None:
        """Issue what the fast path does not take."""
        values = tuple(
            value if role in DATA else _freeze(value) for value, role in zip(values, self.roles, strict=True)
        )
        position = core.record.count
        self._check_arguments(values)
        self._issue_checked(core, values)
        name = values[self.parameters.index("name")] if LABEL in self.roles else None
        if name is not None:
            label(core, self, name, core.record.latest if core.record.count > position else -1)

    def _issue_checked(self, core: Core, values: tuple[Any, ...]) -> None:
        operands, roles = self.flat(values)
        skip = self._skips(values)
        if core.undone:
            refuse_undefined_places(core, values, self.parameters)
        if not self._settled(operands, skip=skip):
            return
        aimed = self.check(core, Check) if indirection.used_in(operands) else None
        arguments = dict(zip(self.parameters, values, strict=True)) if aimed is not None else {}
        if aimed is not None:
            indirection.check_operands(aimed, arguments)
        key = self._key(values)
        plan, check = self._planned(core, key, values)
        if aimed is not None:
            indirection.use(aimed, arguments, plan)
        full = None if core.full_plans is None else in_full_precision(self, core, key, values, plan, check)
        words = execute(core, plan, roles, operands, skip=skip, full=full)
        if aimed is not None:
            indirection.done(arguments)
        if core.undone:
            follow(core, plan, zip(operands, roles, strict=True))
        core.commit(plan, core.record.sites.current(4), words)

    def _planned(self, core: Core, key: tuple[Any, ...], values: tuple[Any, ...]) -> tuple[Plan, Check | None]:
        """The plan of a combination, and where it is new what its guards have spoken to."""
        plans = core.plans if core.full_plans is None else core.full_plans
        if key in plans:
            return plans[key], None
        check = self.check(core, Check)
        plan = self.function(check, *values)
        plan.name = self.name
        plan.arguments = self._names(values)
        named = list(zip(plan.arguments, *self.flat(values), strict=True))
        tensors = [(name, role) for name, value, role in named if role in DATA and isinstance(value, NkiTensor)]
        plan.operands = tuple(name for name, _ in tensors)
        plan.registers = tuple(name for name, value, _ in named if isinstance(value, VirtualRegister))
        plan.written = tuple(role in WRITTEN for _, role in tensors)
        self._find_psum(plan, values)
        plan.number()
        if not check.broken:
            plans[key] = plan
        return plan, check

    def check(self, core: Core, kind: type[AnyCheck]) -> AnyCheck:
        """What guards of this instruction talk to."""
        return kind(self.name, core.generation, self.call_form if core.dialect.shows_call_form else "")

    def flat(self, values: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[int, ...]]:
        """The arguments and their roles, with each tensor of a list as an input of its own."""
        if SOURCES not in self.roles:
            return values, self.roles
        flat: list[tuple[Any, int]] = []
        for value, role in zip(values, self.roles, strict=True):
            flat += [(each, SRC) for each in value] if role == SOURCES else [(value, role)]
        return tuple(value for value, _ in flat), tuple(role for _, role in flat)

    def _find_psum(self, plan: Plan, values: tuple[Any, ...]) -> None:
        """Which operands lie in PSUM, unless the instruction only names them."""
        data = [pair for pair in zip(*self.flat(values), strict=True) if pair[1] in DATA]
        there = [
            (number, role in WRITTEN)
            for number, (value, role) in enumerate(data)
            if isinstance(value, NkiTensor) and value.storage.sums is not None and not plan.names_only
        ]
        plan.psum_reads = tuple(number for number, written in there if not written)
        plan.psum_writes = tuple(number for number, written in there if written)
        plan.in_psum = bool(there)

    def _names(self, values: tuple[Any, ...]) -> tuple[str, ...]:
        """What the arguments are called, with each tensor of a list by its number."""
        names: list[str] = []
        for name, value, role in zip(self.parameters, values, self.roles, strict=True):
            names += [f"{name}[{number}]" for number in range(len(value))] if role == SOURCES else [name]
        return tuple(names)

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
                self._check_static(name, value)
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

    def _check_static(self, name: str, value: Any) -> None:
        default = self.signature.parameters[name].default
        if value is None and default is None:
            return
        if is_operator_name(name):
            if not is_token(value):
                self._wrong(name, f"must be an operator such as nl.add, it is {_told(value)}", _meant(value))
        elif isinstance(default, bool):
            if not (isinstance(value, (bool, np.bool_)) or (type(value) is int and value in (0, 1))):
                self._wrong(name, f"must be True or False, it is {_told(value)}")
        elif not _is_hashable(value):
            self._wrong(name, f"cannot be {type(value).__name__}")

    def _wrong_operand(self, name: str, value: Any, role: int) -> NoReturn:
        other = getattr(type(value), "dialect", None)
        if other is not None and _is_called_by_author():
            refuse(
                "NK608",
                f"nisa.{self.name} is nki's and argument `{name}` is a tensor of {other}; a kernel is written in one "
                "dialect",
                remedy=f"Import {other}.isa as nisa here, or write the kernel with nki and its modules.",
            )
        hint = ""
        if isinstance(value, np.ndarray):
            hint = " NumPy arrays enter a kernel as its arguments."
        elif isinstance(value, (list, tuple)) and role != SOURCES:
            hint = " A list does not become a tensor: pass a NumPy array of it to the kernel."
        self._wrong(
            name,
            f"must be {_WANTED.get(role, 'a tensor')}, it is {'None' if value is None else type(value).__name__}",
            hint,
        )

    def _wrong(self, name: str, sentence: str, hint: str = "") -> NoReturn:
        refuse("NK609", f"nisa.{self.name}: argument `{name}` {sentence}", remedy=self.call_form + hint)

    def _wrong_call(self, error: TypeError) -> NoReturn:
        argument, instead = removed_argument(error)
        if instead:
            refuse("NK608", f"nisa.{self.name}: the argument `{argument}` was removed from NKI", remedy=instead)
        refuse("NK609", str(error).replace("_bound()", f"nisa.{self.name}()"), remedy=self.call_form)

    @cached_property
    def call_form(self) -> str:
        """The signature, as a remedy shows it."""
        return self.form_of(self.signature)

    def form_of(self, signature: inspect.Signature) -> str:
        """Return how the instruction is called by a signature, as a sentence."""
        shown = re.sub(r"<(\w+)\.(\w+): [^>]*>", r"nisa.\1.\2", str(signature))
        return f"The call form is nisa.{self.name}{shown}."


def _is_hashable(value: Any) -> bool:
    """Whether a value can be part of a plan's key."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _told(value: Any) -> str:
    """A wrong argument in a message: short values as they are, others by their class."""
    if isinstance(value, str):
        return f"the string {value!r}"
    plain = value is None or isinstance(value, (bool, int, float, np.generic))
    return repr(value) if plain else f"of class {type(value).__name__}"


def _meant(value: Any) -> str:
    """The operator that a string names."""
    name = value.rpartition(".")[2] if isinstance(value, str) else ""
    return f" Pass nl.{name} itself, without quotes." if name in OPERATORS or name in ACTIVATIONS else ""


def _role(parameter: inspect.Parameter) -> int:
    if parameter.name == "name":
        return LABEL
    return ROLES.get(str(parameter.annotation), STATIC)


def instruction(function: Callable[..., Plan]) -> Instruction:
    """Make a function that checks, plans and prices one combination into an instruction."""
    return Instruction(function)
