"""Plans, the `Check` of guards, and the roles of an instruction's parameters."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeAlias

from nkitools.chip.argument_types import Number
from nkitools.chip.device_numbers import DeviceNumber
from nkitools.chip.numerics import Array
from nkitools.chip.registers import VirtualRegister
from nkitools.chip.scalars import NkiScalar
from nkitools.chip.tensor import NkiTensor
from nkitools.facts.generations import Generation
from nkitools.facts.light_classes import NamedTuple, dataclass
from nkitools.facts.versions import LanguageVersion
from nkitools.issue.element_maps import Elements
from nkitools.record.instruction_record import RecordedPlan
from nkitools.rules.finding import Fact, StopRun, refuse, report

# Roles of parameters, named by their annotations in an instruction's signature.
Dst: TypeAlias = NkiTensor  # written
Src: TypeAlias = NkiTensor  # read
Sources: TypeAlias = list[NkiTensor]  # read: compute gets the arrays one after the other
OptionalDst: TypeAlias = NkiTensor | None
Operand: TypeAlias = Number | NkiTensor  # read: a tensor, or an immediate, which is data and not part of a plan's key
OptionalOperand: TypeAlias = Number | NkiTensor | None
Value: TypeAlias = Array | float  # what compute gets for an Operand: a tensor's array, or the immediate
Fresh: TypeAlias = bool | Array  # the lanes of the destination that were never written
Register: TypeAlias = VirtualRegister  # handed to compute as it is
RegisterOrNumber: TypeAlias = int | DeviceNumber
Scalar: TypeAlias = NkiScalar  # handed to compute as it is

STATIC, DST, OPTIONAL_DST, SRC, OPERAND, OPTIONAL_OPERAND, LABEL, SOURCES = range(8)
REGISTER, REGISTER_OR_NUMBER, SCALAR = range(8, 11)
ROLES = {
    "Dst": DST,
    "OptionalDst": OPTIONAL_DST,
    "Src": SRC,
    "Operand": OPERAND,
    "OptionalOperand": OPTIONAL_OPERAND,
    "Register": REGISTER,
    "RegisterOrNumber": REGISTER_OR_NUMBER,
    "Scalar": SCALAR,
    "Sources": SOURCES,
}
WRITTEN = frozenset({DST, OPTIONAL_DST})
ON_DEVICE = {REGISTER: VirtualRegister, REGISTER_OR_NUMBER: DeviceNumber, SCALAR: NkiScalar}
DATA = frozenset(ROLES.values())

_plan_ids = itertools.count()

# Rules about a tensor itself: reported once for a storage, not again by every later instruction.
ABOUT_STORAGE = frozenset({"NK101", "NK107", "NK110"})


@dataclass(slots=True)
class Plan(RecordedPlan):
    """The execution of one combination of everything that an instruction's guards look at.

    A mask is broadcastable to its operand. Operands are in the order of the signature.
    """

    compute: Callable[..., Any]  # gets the arrays of Dst, Src and Operand parameters; immediates as numbers
    elements: Elements  # which operand elements make which result elements
    # What becomes of undefined input elements:
    #   use        reading one is NK401
    #   travel     the outputs that are computed from one are undefined
    #   copy       as travel; the instruction copies
    #   product    as travel, along a matmul's rows and columns
    #   apart      as travel, if no output is computed from defined elements of the same operand too
    #   exchange   compute also gets undefined=, and returns which results are undefined
    #   leave      as use, but elements that the instruction documents as not modified may leave the chip (NK621)
    lanes: str = "use"
    addresses: tuple[str, ...] = ()  # names of the operands that say where others lie: undefined ones are a use
    adds_to_matmuls_only: bool = False  # values that another instruction wrote are not added to (NK503)
    unique_rows: bool = False  # a scattered output must not name a row twice (NK505)
    psum_reads: tuple[int, ...] = ()  # numbers of the data operands that are inputs in PSUM
    psum_writes: tuple[int, ...] = ()  # numbers of the data operands that are outputs in PSUM
    in_psum: bool = False  # there are some

    def number(self) -> None:
        """Give the plan its id, which the record keeps, once it is complete."""
        self.id = next(_plan_ids)
        if self.engine == "tensor" and "dst" in self.elements.results:
            self.overwrites = all(source.operand != "dst" for source, _ in self.elements.of("dst"))

    def element_text(self) -> str:
        """Return the element map as text, which `nkitools.issue.element_map_text` reads again."""
        from nkitools.issue.element_map_text import text_of

        return text_of(self.elements)


class Reported(NamedTuple):
    """A report of guards, but for the tensors that it is about."""

    rule: str
    message: str
    remedy: str
    facts: Mapping[str, Fact]
    severity: str = ""

    def about(self, *tensors: NkiTensor) -> bool:
        """Report it about some tensors; return whether a run has recorded it."""
        return report(
            self.rule, self.message, about=tensors, remedy=self.remedy, facts=self.facts, severity=self.severity
        )


class Check:
    """The interface of an instruction's guards: the tables of chip and NKI version, and the report of a broken rule."""

    def __init__(
        self,
        instruction: str,
        generation: Generation,
        language: LanguageVersion,
        call_form: Callable[[], str] = str,
        *,
        sums_in_order: bool = False,
    ) -> None:
        self.instruction = instruction
        self.chip = generation
        self.language = language
        self.call_form = call_form
        self.sums_in_order = sums_in_order
        self.operands: dict[str, NkiTensor] = {}  # those of an engine, by their roles
        self.broken = False
        self.said = False
        self.is_beyond = False  # the call is reported again at each line: its plan is not kept
        self.reports: list[tuple[Reported, tuple[NkiTensor, ...]]] = []  # so far, each with what it is about

    def fail(self, rule: str, sentence: str, *about: NkiTensor, remedy: str = "", **facts: Fact) -> None:
        """Report a broken rule; one cause gives one finding, so that later guards of the same call keep silent."""
        if self.broken or any(rule in tensor.storage.excused for tensor in about):
            self.broken = True
            return
        self.broken = True
        if rule in ABOUT_STORAGE:
            for tensor in about:
                tensor.storage.excused |= {rule}
        facts = {"instruction": self.instruction, **facts}
        message = f"{self.instruction}: {sentence}"
        self.said = self._report(Reported(rule, message, self._remedy(rule, remedy), facts), about)

    def goes_beyond(
        self, sentence: str, *about: NkiTensor, remedy: str, rule: str = "NK621", severity: str = ""
    ) -> None:
        """Report a form that the documents exclude, and that is computed; later guards check the call further.

        NK621: compilers have taken it. NK615: they refuse it.
        """
        self.is_beyond = True
        if not self.broken:
            message, facts = f"{self.instruction}: {sentence}", {"instruction": self.instruction}
            self._report(Reported(rule, message, remedy, facts, severity), about)

    def _report(self, said: Reported, about: tuple[NkiTensor, ...]) -> bool:
        self.reports.append((said, about))
        return said.about(*about)

    @property
    def keeps_plan(self) -> bool:
        """Return whether nothing was reported, so that later calls of the same form need no guards."""
        return not self.broken and not self.is_beyond

    def refuse(self, rule: str, sentence: str, *about: NkiTensor, remedy: str = "", **facts: Fact) -> NoReturn:
        """Report what cannot be computed; where something of this call was reported before, that was the cause."""
        if self.said:
            raise StopRun
        facts = {"instruction": self.instruction, **facts}
        message = f"{self.instruction}: {sentence}"
        refuse(rule, message, about=about, remedy=self._remedy(rule, remedy), facts=facts)

    def _remedy(self, rule: str, remedy: str) -> str:
        """Return a guard's remedy; for NK609 without one, the call form."""
        return remedy or (self.call_form() if rule == "NK609" else "")
