"""What makes a function an instruction: the call form, the plan of each combination, the execution and the record.

An instruction's function runs when a combination of everything its guards look at is met for the first time. It checks (guards),
builds what to compute (meaning) and says what that costs, and returns all as a `Plan`. The plan is kept and looked up from
then on, so that a call costs a dictionary lookup beside NumPy's own work.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import numpy as np

from nkitools.chip.core import CORE, Core, current_core
from nkitools.chip.generations import Generation
from nkitools.chip.numerics import Array
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.views import describe
from nkitools.rules.finding import refuse, report

# Roles of parameters, named by their annotations in an instruction's signature.
Dst: TypeAlias = NkiTensor  # written
Src: TypeAlias = NkiTensor  # read
OptionalDst: TypeAlias = NkiTensor | None
Operand: TypeAlias = float | NkiTensor  # read: a tensor, or an immediate, which is data and not part of a plan's key
OptionalOperand: TypeAlias = float | NkiTensor | None

_ROLES = {"Dst": 1, "OptionalDst": 2, "Src": 3, "Operand": 4, "OptionalOperand": 5}
_TENSOR_ROLES = frozenset({1, 2, 3})
_plan_ids = itertools.count()


@dataclass(slots=True)
class Plan:
    """How one combination is executed.

    ``compute`` gets the arrays of all Dst, Src and Operand parameters in the order of the signature (immediates as numbers, absent ones as
    None). ``lanes`` says what undefined input lanes do in the legacy dialect: ``"travel"`` makes the same output lanes undefined,
    ``"use"`` is a use (NK401). ``wants_fresh``: compute also gets ``fresh=``, which lanes of the destination were never written
    (True for all, False for none, else a mask); ``adds_always``: never written lanes are then a finding (NK401).
    """

    engine: str
    cycles: float
    compute: Callable[..., Any]
    lanes: str = "use"
    wants_fresh: bool = False
    adds_always: bool = False
    several_steps: bool = False
    name: str = ""
    outputs: int = 1
    id: int = -1


class Check:
    """What an instruction's guards talk to: the chip's table, and how to say that something is broken."""

    def __init__(self, instruction: Instruction, generation: Generation) -> None:
        self.instruction = instruction
        self.chip = generation
        self.broken = False

    def fail(self, rule: str, sentence: str, *about: NkiTensor, remedy: str = "") -> None:
        """Report a broken rule; one cause gives one finding, so that later guards of the same call keep silent."""
        if self.broken or any(rule in tensor.storage.excused for tensor in about):
            return
        self.broken = True
        for tensor in about:
            if rule in ("NK101", "NK107", "NK110"):
                tensor.storage.excused.add(rule)
        report(rule, f"{self.instruction.name}: {sentence}", about=about, remedy=remedy)

    def refuse(self, rule: str, sentence: str, *about: NkiTensor, remedy: str = "") -> NoReturn:
        """Report what cannot be computed."""
        refuse(rule, f"{self.instruction.name}: {sentence}", about=about, remedy=remedy)


def _freeze(value: Any) -> Any:
    """A static argument as something that can be hashed."""
    if isinstance(value, (list, tuple)):
        return tuple(_freeze(item) for item in value)
    return value


class NkiInstruction:
    """The handle of an issued instruction. Instructions run in program order here, so a dependence changes no result."""

    def depends_on(self, *producers: NkiInstruction) -> NkiInstruction:
        """Let this instruction run after the producers; returns itself."""
        for producer in producers:
            if not isinstance(producer, NkiInstruction):
                refuse("NK609", f"depends_on takes the handles of instructions, it is given {type(producer).__name__}")
        return self


_HANDLE = NkiInstruction()


class Instruction:
    """One instruction: callable in both modern call forms, positional and by keyword."""

    def __init__(self, function: Callable[..., Plan]) -> None:
        self.function = function
        self.name = function.__name__
        signature = inspect.signature(function)
        parameters = list(signature.parameters.values())[1:]
        self.signature = signature.replace(parameters=[p.replace(annotation=p.empty) for p in parameters],
                                           return_annotation=signature.empty)
        self.__name__ = self.__qualname__ = function.__name__
        self.__doc__ = function.__doc__
        self.__signature__ = self.signature
        self.roles = tuple(_ROLES.get(str(parameter.annotation), 0) for parameter in parameters)
        self.parameters = tuple(parameter.name for parameter in parameters)
        self.named = "name" in self.parameters
        self.outputs = sum(role in (1, 2) for role in self.roles)
        self._bind = _binder(parameters)

    def __repr__(self) -> str:
        return f"<instruction nisa.{self.name}{self.signature}>"

    def __call__(self, *args: Any, **kwargs: Any) -> NkiInstruction:
        core = CORE.get()
        if core is None:
            core = current_core(f"nisa.{self.name}")
        try:
            values = self._bind(*args, **kwargs)
        except TypeError as error:
            self._wrong_call(error)
        self._issue(core, values)
        return _HANDLE

    def _issue(self, core: Core, values: tuple[Any, ...]) -> None:
        key: list[Any] = [self]
        for value, role in zip(values, self.roles, strict=True):
            if role:
                if isinstance(value, NkiTensor):
                    key.append(value._layout or value.layout)
                else:
                    key.append(type(value))
            else:
                key.append(type(value))
                key.append(value)
        found = tuple(key)
        try:
            plan = core.plans.get(found)
        except TypeError:
            values = tuple(
                value if role else _freeze(value) for value, role in zip(values, self.roles, strict=True)
            )
            self._check_statics(values)
            self._issue(core, values)
            return
        if plan is None:
            plan = self._plan(core, found, values)
        self._execute(core, plan, values)

    # --- planning --------------------------------------------------------------------------------------------------

    def _plan(self, core: Core, key: tuple[Any, ...], values: tuple[Any, ...]) -> Plan:
        self._check_roles(values)
        check = Check(self, core.generation)
        plan = self.function(check, *values)
        plan.name = self.name
        plan.outputs = sum(
            role in (1, 2) and value is not None for value, role in zip(values, self.roles, strict=True)
        )
        plan.id = next(_plan_ids)
        if not check.broken:
            core.plans[key] = plan
        return plan

    def _check_roles(self, values: tuple[Any, ...]) -> None:
        for name, value, role in zip(self.parameters, values, self.roles, strict=True):
            if role == 0 or isinstance(value, NkiTensor):
                continue
            if value is None and role in (2, 5):
                continue
            if role in (4, 5) and isinstance(value, (int, float, np.number, np.bool_)):
                continue
            wanted = "a tensor" if role in _TENSOR_ROLES else "a number or a tensor"
            hint = ""
            if isinstance(value, np.ndarray):
                hint = " NumPy arrays enter a kernel as its arguments, or through nl.shared_constant."
            refuse(
                "NK609",
                f"nisa.{self.name}: argument `{name}` must be {wanted}, it is {type(value).__name__}",
                remedy=f"The call form is nisa.{self.name}{self.signature}.{hint}",
            )

    def _check_statics(self, values: tuple[Any, ...]) -> None:
        for name, value, role in zip(self.parameters, values, self.roles, strict=True):
            try:
                hash(value)
            except TypeError:
                if not role:
                    refuse("NK609", f"nisa.{self.name}: argument `{name}` cannot be {type(value).__name__}")

    def _wrong_call(self, error: TypeError) -> NoReturn:
        text = str(error).replace("_bound()", f"nisa.{self.name}()")
        refuse("NK609", text, remedy=f"The call form is nisa.{self.name}{self.signature}.")

    # --- execution -------------------------------------------------------------------------------------------------

    def _execute(self, core: Core, plan: Plan, values: tuple[Any, ...]) -> None:
        arrays: list[Any] = []
        words: list[int] = []
        tensors: list[tuple[NkiTensor, int]] = []
        plain = True
        for value, role in zip(values, self.roles, strict=True):
            if not role:
                continue
            if isinstance(value, NkiTensor):
                storage = value.storage
                layout = value._layout or value.layout
                words.append(storage.id << 32 | layout.id)
                words.append(value.byte_offset)
                if not storage.full or not value.direct:
                    plain = False
                tensors.append((value, role))
                arrays.append(value.array)
            else:
                arrays.append(value)
        if core.inputs_read_only:
            self._check_inputs(core, tensors)
        if plan.several_steps:
            _part_aliases(tensors, arrays)
        if plain:
            if plan.wants_fresh:
                plan.compute(*arrays, fresh=False)
            else:
                plan.compute(*arrays)
        else:
            self._execute_carefully(core, plan, tensors, arrays)
        core.record.issued(plan, core.record.sites.current(3), words)

    def _execute_carefully(
        self, core: Core, plan: Plan, tensors: list[tuple[NkiTensor, int]], arrays: list[Any]
    ) -> None:
        """Execution with what is not plain: unwritten elements, masked or indirect views."""
        undefined = self._undefined_lanes(core, plan, tensors)
        outputs = [tensor for tensor, role in tensors if role in (1, 2)]
        keywords = {"fresh": self._fresh(plan, outputs[0])} if plan.wants_fresh else {}
        results = [tensor.array if tensor.direct else tensor.read().copy() for tensor in outputs]
        inputs = iter(results)
        operands = iter(tensors)
        resolved: list[Any] = []
        for array in arrays:
            if not isinstance(array, np.ndarray):
                resolved.append(array)
                continue
            tensor, role = next(operands)
            resolved.append(next(inputs) if role in (1, 2) else array if tensor.direct else tensor.read())
        plan.compute(*resolved, **keywords)
        for tensor, result in zip(outputs, results, strict=True):
            where = getattr(tensor, "where", None)
            if not tensor.direct:
                tensor.write(result)
            storage = tensor.storage
            if not storage.full:
                storage.mark_written(tensor.layout, tensor.byte_offset, where)
            if undefined is not None:
                lanes = np.broadcast_to(undefined, tensor.shape) if where is None else undefined & where
                storage.mark_unwritten(tensor.layout, tensor.byte_offset, lanes)

    def _check_inputs(self, core: Core, tensors: list[tuple[NkiTensor, int]]) -> None:
        for tensor, role in tensors:
            if role in (1, 2) and tensor.storage.id in core.input_ids:
                report("NK406", f"{self.name}: {describe(tensor)} is an input of the kernel and is written to", about=(tensor,))

    def _undefined_lanes(self, core: Core, plan: Plan, tensors: list[tuple[NkiTensor, int]]) -> Array | None:
        """Lanes of the result that depend on unwritten elements; where they may not travel, that is NK401."""
        undefined: Array | None = None
        for tensor, role in tensors:
            if role in (1, 2):
                continue
            missing = tensor.storage.unwritten(tensor.layout, tensor.byte_offset)
            if missing is None:
                continue
            shape = tensors[0][0].shape
            lanes = _lanes(missing, shape) if core.undefined_travels and plan.lanes == "travel" else None
            if lanes is None:
                tensor.storage.poison_unwritten()
                self._report_unwritten(tensor, missing)
                continue
            undefined = lanes if undefined is None else undefined | lanes
        return undefined

    def _fresh(self, plan: Plan, tensor: NkiTensor) -> Any:
        """Which lanes of the destination were never written: True for all, False for none, else a mask."""
        missing = tensor.storage.unwritten(tensor.layout, tensor.byte_offset)
        if missing is None:
            return False
        if plan.adds_always:
            report(
                "NK401",
                f"{self.name}: accumulate=True adds to elements of {describe(tensor)} that were never written; the first "
                "matmul into a PSUM tile must overwrite",
                about=(tensor,),
                remedy="Pass accumulate=(i > 0), or leave accumulate out.",
            )
        return True if missing.all() else missing

    def _report_unwritten(self, tensor: NkiTensor, missing: Array) -> None:
        first = tuple(int(axis[0]) for axis in np.nonzero(missing))
        count = int(np.count_nonzero(missing))
        report(
            "NK401",
            f"{self.name}: {count} of {missing.size} elements of {describe(tensor)} are read but were never written; the "
            f"first is at index {list(first)}",
            about=(tensor,),
        )


def _lanes(missing: Array, shape: tuple[int, ...]) -> Array | None:
    """A mask over an operand's elements as a mask over the result, where the two have one form."""
    if missing.shape == shape:
        return missing
    if missing.size == int(np.prod(shape)):
        return missing.reshape(shape)
    try:
        return np.broadcast_to(missing, shape)
    except ValueError:
        return None


def _part_aliases(tensors: Sequence[tuple[NkiTensor, int]], arrays: list[Any]) -> None:
    """Copy operands that share storage with the destination, where a computation writes it before it has read all.

    The first input may be the destination itself: each step reads an element before it writes it.
    """
    destination = tensors[0][0]
    positions = iter([index for index, array in enumerate(arrays) if isinstance(array, np.ndarray)])
    for number, (tensor, role) in enumerate(tensors):
        position = next(positions)
        if role in (1, 2) or tensor.storage is not destination.storage:
            continue
        same = tensor.byte_offset == destination.byte_offset and tensor.layout is destination.layout
        if not (same and number == 1):
            arrays[position] = tensor.array.copy()


def _binder(parameters: Sequence[inspect.Parameter]) -> Callable[..., tuple[Any, ...]]:
    """A function with the instruction's own signature that returns its arguments as a tuple: binding at Python's speed."""
    names = [parameter.name for parameter in parameters]
    defaults = {f"_{p.name}": p.default for p in parameters if p.default is not p.empty}
    form = []
    keyword_only = False
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            form.append("*")
            keyword_only = True
        form.append(parameter.name if parameter.default is parameter.empty else f"{parameter.name}=_{parameter.name}")
    source = f"def _bound({', '.join(form)}):\n    return ({', '.join(names)},)\n"
    namespace: dict[str, Any] = dict(defaults)
    exec(compile(source, "<nkitools binder>", "exec"), namespace)
    bound: Callable[..., tuple[Any, ...]] = namespace["_bound"]
    return bound


def instruction(function: Callable[..., Plan]) -> Instruction:
    """Make a function that checks, plans and prices one combination into an instruction."""
    return Instruction(function)
