"""Plans, what guards talk to, and the roles of an instruction's parameters."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

from nkitools.chip.generations import Generation
from nkitools.chip.registers import VirtualRegister
from nkitools.chip.tensor import NkiTensor
from nkitools.issue.element_maps import Elements
from nkitools.rules.finding import StopRun, refuse, report

# Roles of parameters, named by their annotations in an instruction's signature.
Dst: TypeAlias = NkiTensor  # written
Src: TypeAlias = NkiTensor  # read
Sources: TypeAlias = list[NkiTensor]  # read: compute gets the arrays one after the other
OptionalDst: TypeAlias = NkiTensor | None
Operand: TypeAlias = float | NkiTensor  # read: a tensor, or an immediate, which is data and not part of a plan's key
OptionalOperand: TypeAlias = float | NkiTensor | None
Register: TypeAlias = VirtualRegister  # handed to compute as it is
RegisterOrNumber: TypeAlias = int | VirtualRegister

STATIC, DST, OPTIONAL_DST, SRC, OPERAND, OPTIONAL_OPERAND, LABEL, REGISTER, REGISTER_OR_NUMBER, SOURCES = range(10)
ROLES = {
    "Dst": DST,
    "OptionalDst": OPTIONAL_DST,
    "Src": SRC,
    "Operand": OPERAND,
    "OptionalOperand": OPTIONAL_OPERAND,
    "Register": REGISTER,
    "RegisterOrNumber": REGISTER_OR_NUMBER,
    "Sources": SOURCES,
}
WRITTEN = frozenset({DST, OPTIONAL_DST})
DATA = frozenset(ROLES.values())

_plan_ids = itertools.count()

# Rules that speak about a tensor itself: said once of a storage, not again by every later instruction.
_ABOUT_STORAGE = frozenset({"NK101", "NK107", "NK110"})


@dataclass(slots=True)
class Plan:
    """How one combination is executed.

    ``compute`` gets the arrays of all Dst, Src and Operand parameters in the order of the signature (immediates as
    numbers, absent ones as None). ``lanes`` says what undefined input lanes do in the legacy dialect: ``"travel"``
    makes the same output lanes undefined, ``"product"`` those of a matmul that they reach, ``"use"`` is a use (NK401).
    ``wants_fresh``: compute also gets ``fresh=``, which lanes of the destination were never written (True for all,
    False for none, else a mask); ``adds_always``: never written lanes are then a finding (NK401).
    ``adds_to_matmuls_only``: lanes that another instruction wrote are one, too; ``overwrites``: a matmul that makes a
    region its own. ``touches``: for each tensor operand, in the order of the signature, a mask (broadcastable to it) of
    the lanes that are read or written, or None for all. ``chooses``, where values decide that, makes these masks of the
    arrays that compute gets, and before it; ``touches`` is then not empty (its masks play no part) where an output may
    be written in part. ``last_axis``: the rows of a gathered input run along the last axis of the result, not along its
    first. ``unique_rows``: a scattered output must not name a row twice (NK505). ``names_only``: the operands are
    neither read nor written. ``passes``: how often a matmul streams its moving operand through the array; ``tiled``: it
    uses a part of that, beside others. ``arguments``: what the arguments are called, with each tensor of a list on its
    own. ``written``: for each tensor operand, in the same order, whether it is an output. ``psum_reads``,
    ``psum_writes``: which data operands (by their number) are inputs and outputs in PSUM; ``in_psum``: there are some.
    """

    engine: str
    cycles: float
    compute: Callable[..., Any]
    elements: Elements  # which operand elements make which result elements
    lanes: str = "use"
    wants_fresh: bool = False
    adds_always: bool = False
    adds_to_matmuls_only: bool = False
    overwrites: bool = False
    touches: tuple[Any, ...] = ()
    chooses: Callable[..., tuple[Any, ...]] | None = None
    last_axis: bool = False
    unique_rows: bool = False
    names_only: bool = False
    passes: int = 1
    tiled: bool = False
    name: str = ""
    arguments: tuple[str, ...] = ()
    operands: tuple[str, ...] = ()  # names of the tensor operands, in the order of the signature
    registers: tuple[str, ...] = ()  # names of the arguments that are registers
    written: tuple[bool, ...] = ()
    psum_reads: tuple[int, ...] = ()
    psum_writes: tuple[int, ...] = ()
    in_psum: bool = False
    id: int = -1

    def number(self) -> None:
        """Give the plan its id, which the record keeps."""
        self.id = next(_plan_ids)


class Check:
    """What an instruction's guards talk to: the chip's table, and how to say that something is broken."""

    def __init__(self, instruction: str, generation: Generation, call_form: str = "") -> None:
        self.instruction = instruction
        self.chip = generation
        self.call_form = call_form
        self.broken = False
        self.said = False

    def fail(self, rule: str, sentence: str, *about: NkiTensor, remedy: str = "") -> None:
        """Report a broken rule; one cause gives one finding, so that later guards of the same call keep silent."""
        if self.broken or any(rule in tensor.storage.excused for tensor in about):
            self.broken = True
            return
        self.broken = True
        if rule in _ABOUT_STORAGE:
            for tensor in about:
                tensor.storage.excused.add(rule)
        self.said = report(rule, f"{self.instruction}: {sentence}", about=about, remedy=self._remedy(rule, remedy))

    def refuse(self, rule: str, sentence: str, *about: NkiTensor, remedy: str = "") -> NoReturn:
        """Report what cannot be computed; where something of this call was reported before, that was the cause."""
        if self.said:
            raise StopRun
        refuse(rule, f"{self.instruction}: {sentence}", about=about, remedy=self._remedy(rule, remedy))

    def _remedy(self, rule: str, remedy: str) -> str:
        """What a guard says to do; where it only says that the call is wrong, the call form."""
        return remedy or (self.call_form if rule == "NK609" else "")
