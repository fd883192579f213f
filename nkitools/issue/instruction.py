"""Instructions: a function with a call form, and a plan kept for each combination of its arguments.

An instruction's function runs when a combination of everything its guards look at is met for the first time. It checks
(guards), builds the computation (meaning) and states its cost, and returns all as a `Plan`. The plan is kept and
looked up from then on, so that a call costs a dictionary lookup beside NumPy's own work.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import cached_property
from types import FunctionType
from typing import Any, Concatenate, Generic, NoReturn, ParamSpec, cast

import numpy as np

from nkitools.chip.core import CORE, Core, current_core
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.version_notices import report_notice
from nkitools.engines.enums import dependency
from nkitools.engines.operators import ACTIVATIONS, OPERATORS, is_operator_name, is_token
from nkitools.facts import versions
from nkitools.issue.carry_out import carry_out
from nkitools.issue.fast_path import MISSING, binder, caller
from nkitools.issue.form import InstructionForm
from nkitools.issue.instruction_names import DeviceLoop, label
from nkitools.issue.plan import (
    LABEL,
    ON_DEVICE,
    OPERAND,
    OPTIONAL_DST,
    OPTIONAL_OPERAND,
    REGISTER,
    REGISTER_OR_NUMBER,
    SCALAR,
    SOURCES,
    STATIC,
    Check,
    Dst,
    Operand,
    OptionalDst,
    OptionalOperand,
    Plan,
    Src,
)
from nkitools.issue.resolve import resolve
from nkitools.issue.written_arguments import is_kept
from nkitools.record.source_sites import is_internal
from nkitools.record.tensor_names import is_grid
from nkitools.rules.catalogue import removed_argument
from nkitools.rules.finding import StopRun, refuse

__all__ = [
    "Check", "Dst", "Instruction", "NkiInstruction", "Operand", "OptionalDst", "OptionalOperand", "Plan", "Src",
    "instruction",
]  # fmt: skip

_NUMBERS = (int, float, np.generic)
_WHOLE = (int, np.integer)
_WANTED = {
    OPERAND: "a number or a tensor",
    OPTIONAL_OPERAND: "a number or a tensor",
    REGISTER: "a register of nisa.register_alloc",
    REGISTER_OR_NUMBER: "an integer, a register of nisa.register_alloc or a scalar",
    SCALAR: "a scalar of nisa.scalar_load",
    SOURCES: "a list of tensors",
}


Binder = Callable[..., tuple[Any, ...]]
P = ParamSpec("P")  # the parameters of an instruction, as its authors call them


class NkiInstruction:
    """The handle of an issued instruction: a nki.isa call returns it, and `depends_on` takes it.

    Instructions run in program order here: a dependence changes no result.
    """

    def __init__(self, handle: DeviceLoop | None) -> None:
        self.handle = handle

    def depends_on(self, *producers: NkiInstruction, kind: dependency | None = None) -> NkiInstruction:
        """Let this instruction run after the producers, handles of earlier instructions; return this handle.

        It changes no result here, where instructions run in the order of the program. ``kind`` (NKI 0.7): ``runtime``,
        a wait on the hardware, as without ``kind``; or ``schedule``, the order in which the compiler issues both. Under
        NKI 0.7 and without a named version a call without ``kind`` is NK618, a hint. An instruction waits for a
        producer in a loop on the device only inside that loop: the wait is compiled once and would otherwise fire in
        every turn, or never (NK601). Errors: NK601, NK609, NK618. Source: nki.isa.NkiInstruction.depends_on (NKI 0.7).
        """
        _check_kind(kind)
        for producer in producers:
            if not isinstance(producer, NkiInstruction):
                refuse(
                    "NK609",
                    f"depends_on takes the handles of instructions, it is given {type(producer).__name__}",
                    remedy="A handle is what a nki.isa call returns: later.depends_on(earlier).",
                )
            waits = kind is not dependency.schedule
            if waits and producer.handle is not None and not producer.handle.holds(self.handle):
                refuse(
                    "NK601",
                    "depends_on: the producer was issued in a loop on the device that this instruction is not in",
                    remedy="Let an instruction wait for others of the same loop body, or for ones issued before it.",
                )
        return self


def _check_kind(kind: dependency | None) -> None:
    """NK609: no kind of `dependency`, if the NKI version has kinds. NK618: no kind, if the version announces that
    change.
    """
    core, rows = CORE.get(), versions.by_full_name()
    row = rows["nki.isa.NkiInstruction.depends_on(kind)"]
    if kind is not None and not isinstance(kind, dependency):
        refuse("NK609", f"depends_on: kind must be a nki.isa.dependency, it is {kind!r}", remedy=row.instead)
    if core is None:
        return
    if kind is None:
        report_notice(versions.notice(rows["nki.isa.depends_on without kind="], core.language))
    elif not row.is_in(core.language):
        refuse("NK609", f"depends_on: the argument `kind` {row.absence(core.language)}", remedy=row.instead)


HANDLE = NkiInstruction(None)


_WAYS = (__file__, caller.__code__.co_filename)


def _is_called_by_author() -> bool:
    """Return whether the instruction at hand was called from the author's file, not from a dialect's."""
    frame: Any = sys._getframe(1)
    while frame.f_code.co_filename in _WAYS or frame.f_code.co_filename.startswith("<nkitools"):
        frame = frame.f_back
    return not is_internal(frame.f_code.co_filename)


class Instruction(InstructionForm, Generic[P]):
    """One instruction, callable with positional and keyword arguments; ``call``: the function that authors call."""

    usual_handle = HANDLE

    def __init__(self, function: Callable[Concatenate[Check, P], Plan]) -> None:
        super().__init__(function)
        self.__name__ = self.__qualname__ = function.__name__
        self.__doc__ = function.__doc__
        self.__signature__ = self.signature
        call: Any = self._public_call()
        call.__signature__, call.__doc__, call.__wrapped__ = self.signature, self.__doc__, function
        call.instruction = self
        self.call: Callable[P, NkiInstruction] = call

    def _public_call(self) -> FunctionType:
        """Return the function that authors call."""
        return caller(self, self.form, self.roles)

    def called_from(self, depth: int) -> Callable[P, NkiInstruction]:
        """Return the function that authors call, for a function of ours that the author's line calls: see `caller`."""
        return cast("Callable[P, NkiInstruction]", caller(self, self.form, self.roles, depth=depth))

    @cached_property
    def bind(self) -> Binder:
        """Return the function that binds the arguments of a call."""
        return binder(self.name, self.form)

    def __repr__(self) -> str:
        return f"<instruction nisa.{self.name}{self.signature}>"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> NkiInstruction:
        return self.inner(*args, **kwargs)

    @cached_property
    def inner(self) -> Callable[P, NkiInstruction]:
        """Return the function that our own functions call: as `call`, for an author's line further out."""
        return cast("Callable[P, NkiInstruction]", caller(self, self.form, self.roles, depth=None))

    def take(
        self, core: Core | None, values: tuple[Any, ...], more: tuple[Any, ...], unknown: dict[str, Any]
    ) -> NkiInstruction:
        """Issue a call that the fast path does not take; ``more`` and ``unknown``: arguments that have no parameter."""
        if core is None:
            core = current_core(f"nisa.{self.name}")
        if more or unknown:
            self._bind_wrong_call(values, more, unknown)
        for value in values:
            if value is MISSING:
                self._bind_wrong_call(values, more, unknown)
        return self.issue(core, values)

    def issue(self, core: Core, values: tuple[Any, ...]) -> NkiInstruction:
        """Issue a call whose arguments are bound, on the careful way unless its form is known."""
        if core.record.open is not None:
            core.record.begin_instruction()
        try:
            if not self._issue_again(core, values):
                self.issue_carefully(core, values)
        except StopRun:
            self.leave_undone(core, values)
        return self.handle(core)

    def _issue_again(self, core: Core, values: tuple[Any, ...]) -> bool:
        """Issue a call whose form is known; return False, with nothing done, for others."""
        if core.broken_plans:
            from nkitools.issue.broken_plans import issue_broken  # for kernels that have such calls

            if issue_broken(self, core, values):
                return True
        if not self.touches_in_part and not any(map(_is_special, values)):
            return False
        from nkitools.issue.warm_call import issue_warm  # for kernels that have such calls

        return issue_warm(self, core, values)

    def break_off(self, core: Core, values: tuple[Any, ...], error: StopRun | ValueError) -> None:
        """Issue a call again that could not write into an argument, which is kept; raise other errors.

        Let the outputs of a call that was refused be undefined.
        """
        if isinstance(error, StopRun):
            self.leave_undone(core, values)
            return
        if not is_kept(values, error):
            raise error
        try:
            self.issue_carefully(core, values)
        except StopRun:
            self.leave_undone(core, values)

    def leave_undone(self, core: Core, values: tuple[Any, ...]) -> None:
        """Let the outputs of a call that was refused be undefined."""
        from nkitools.issue.refused_instructions import leave_undone

        leave_undone(core, values, self.roles, waits=self.exchanges)

    @staticmethod
    def handle(core: Core) -> NkiInstruction:
        """Return the handle of an instruction that was issued."""
        return HANDLE if core.device_loop is None else NkiInstruction(core.device_loop)

    def issue_carefully(self, core: Core, values: tuple[Any, ...]) -> None:
        """Issue a call step by step, whether a plan is kept for it or not."""
        values = self.frozen(values)
        self._check_arguments(values)
        call, name = resolve(self, core, values), self.argument("name", values)
        if call is not None:
            carry_out(call, self, name)
        elif name is not None:
            label(core, self, name, -1)

    def _check_arguments(self, values: tuple[Any, ...]) -> None:
        """NK609: an argument is no tensor or number as its parameter needs, or cannot be part of a key."""
        for name, value, role in zip(self.parameters, values, self.roles, strict=True):
            if role in (STATIC, LABEL):
                self._check_static(name, value)
            elif role == SOURCES:
                if not isinstance(value, (list, tuple)) or not all(isinstance(each, NkiTensor) for each in value):
                    self._wrong_operand(name, value, role)
            elif not (
                (isinstance(value, NkiTensor) and role not in ON_DEVICE)
                or (value is None and role in (OPTIONAL_DST, OPTIONAL_OPERAND))
                or (isinstance(value, _NUMBERS) and role in (OPERAND, OPTIONAL_OPERAND))
                or (role in ON_DEVICE and isinstance(value, ON_DEVICE[role]))
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
        if is_grid(value):
            hint = " Pass .data of the grid, its selection as one tensor."
        if isinstance(value, np.ndarray):
            hint = " Make tiles with nl.ndarray(...). NumPy arrays can only be passed in as arguments."
        elif isinstance(value, (list, tuple)) and role != SOURCES:
            hint = " A list does not become a tensor: pass a NumPy array of it to the kernel."
        self._wrong(
            name,
            f"must be {_WANTED.get(role, 'a tensor')}, it is {'None' if value is None else type(value).__name__}",
            hint,
        )

    def _wrong(self, name: str, sentence: str, hint: str = "") -> NoReturn:
        refuse("NK609", f"nisa.{self.name}: argument `{name}` {sentence}", remedy=self.call_form + hint)

    def _bind_wrong_call(self, values: tuple[Any, ...], more: tuple[Any, ...], unknown: dict[str, Any]) -> NoReturn:
        """Refuse a call with too many arguments, too few, or unknown ones, as Python would."""
        given = {name: value for name, value in zip(self.parameters, values, strict=True) if value is not MISSING}
        try:
            self.bind(*values, *more, **unknown) if more else self.bind(**given, **unknown)
        except TypeError as error:
            wrong = error.with_traceback(None)  # whose frames would hold it, and all that they name
        self.refuse_call(wrong)

    def refuse_call(self, error: TypeError) -> NoReturn:
        """Refuse a call whose arguments Python could not bind (NK609), or with one that is gone (NK608)."""
        argument, instead = removed_argument(error)
        if instead:
            refuse("NK608", f"nisa.{self.name}: the argument `{argument}` was removed from NKI", remedy=instead)
        from nkitools.facts.invented_names import keyword_remedy

        text = re.sub(r"^\w+\(\)", f"nisa.{self.name}()", str(error))
        refuse("NK609", text, remedy=keyword_remedy(argument, self.parameters) + self.call_form)


def _is_special(value: Any) -> bool:
    """Return whether an argument is a list, or a view that is not a plain one."""
    kind = value.__class__
    return kind is list or (kind is not NkiTensor and isinstance(value, NkiTensor))


def _is_hashable(value: Any) -> bool:
    """Return whether a value can be part of a plan's key."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _told(value: Any) -> str:
    """Return a wrong argument in a message: short values as they are, others by their class."""
    if isinstance(value, str):
        return f"the string {value!r}"
    plain = value is None or isinstance(value, (bool, int, float, np.generic))
    return repr(value) if plain else f"of class {type(value).__name__}"


def _meant(value: Any) -> str:
    """Return the operator that a string names."""
    name = value.rpartition(".")[2] if isinstance(value, str) else ""
    return f" Pass nl.{name} itself, without quotes." if name in OPERATORS or name in ACTIVATIONS else ""


def instruction(function: Callable[Concatenate[Check, P], Plan]) -> Instruction[P]:
    """Make a function that checks, plans and prices one combination into an instruction.

    The instruction has the function's parameters without ``check``, for editors and type checkers too.
    """
    return Instruction(function)
