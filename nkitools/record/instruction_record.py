"""The fields of an instruction, in the record and as a run shows them: all stand here, and nowhere else.

A field of `RecordedPlan` that `InstructionRecord` has too is read from the plan of the instruction, a counter of
`Counters` from its row. Rows, columns and saved files take names, types and defaults from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nkitools.facts.light_classes import KW_ONLY, dataclass
from nkitools.rules.shown_text import shown_file, shown_line


@dataclass(slots=True)
class RecordedPlan:
    """The part of an instruction's plan that the record reads, and that a file keeps; see `nkitools.issue.plan.Plan`.

    In a file ``touches`` and ``chooses`` are kept as truth values.
    """

    engine: str
    cycles: float  # of the engine's clock, 0 for a transfer
    _: KW_ONLY
    nanoseconds: float = 0.0  # of a transfer with its completion, 0 for others
    wants_fresh: bool = False  # compute also gets fresh=, the lanes of the destination that were never written
    adds_always: bool = False  # never written lanes of the destination are a finding (NK401)
    overwrites: bool = False  # a matmul that makes a region its own: no earlier value of it is a source
    touches: Any = ()  # for each tensor operand a mask of the lanes read or written, or None for all
    # Makes these masks from the arrays, before compute; ``touches`` is then not empty where outputs may be partial.
    chooses: Any = None
    names_only: bool = False  # the operands are neither read nor written
    passes: int = 1  # how often a matmul streams its moving operand through the array
    tiled: bool = False  # a matmul that uses a part of the array, beside others
    elsewhere: tuple[tuple[str, float], ...] = ()  # engines and cycles that a compiler may choose instead
    name: str = ""
    function: str = ""  # of an activation: its operator
    arguments: tuple[str, ...] = ()  # names of the arguments, with each tensor of a list on its own
    written: tuple[bool, ...] = ()  # for each tensor operand whether it is an output
    operands: tuple[str, ...] = ()  # names of the tensor operands, in the order of the signature
    registers: tuple[str, ...] = ()  # names of the arguments that are registers
    element_map: str = ""  # of a plan out of a file: which operand elements make which result elements
    id: int = -1

    def element_text(self) -> str:
        """Return the element map as text."""
        return self.element_map


class Counters:
    """Numbers that the record keeps for each instruction: the attributes are those of the next instruction.

    A file that was saved before a counter existed gets the default here for all instructions.
    """

    loop: int = -1  # the loop state: the counters of the loops around the instruction


COUNTERS = tuple(Counters.__annotations__)


@dataclass(frozen=True)
class OperandRecord:
    """One operand of an issued instruction: its tensor and region."""

    tensor: str
    memory: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    byte_offset: int
    written: bool

    def __repr__(self) -> str:
        return f"<{self.tensor or '(unnamed)'} {self.memory} {self.dtype} {list(self.shape)}>"


@dataclass(frozen=True)
class InstructionRecord:
    """One issued instruction."""

    name: str
    engine: str
    cycles: float  # of the engine's clock, 0 for a transfer
    operands: tuple[OperandRecord, ...]
    file: str
    line: int
    program: tuple[int, ...]
    loops: dict[str, int]
    rank: int | None = None
    nanoseconds: float = 0.0  # of a transfer with its completion, 0 for others

    def __repr__(self) -> str:
        program = f" program {', '.join(map(str, self.program))}" if any(self.program) else ""
        rank = "" if self.rank is None else f" rank {self.rank}"
        counters = "".join(f" {name}={value}" for name, value in self.loops.items())
        named = [each.tensor or "(unnamed)" for each in self.operands if each.written]
        read = [each.tensor or "(unnamed)" for each in self.operands if not each.written]
        place = f"{shown_file(self.file, whole=False)}:{self.line}"
        return shown_line(
            f"<{self.name} ({self.engine}) {place}{rank}{program}{counters}: {', '.join(named)} from {', '.join(read)}>"
        )

    if not TYPE_CHECKING:  # an editor would take it for attributes of any name

        def __getattr__(self, name: str) -> Any:
            """Return the operands, which `nkitools.record.instruction_reader` reads when they are first asked for."""
            if name != "operands" or "_read" not in self.__dict__:
                raise AttributeError(f"an InstructionRecord has no attribute {name!r}", name=name, obj=self)
            read, packed = self.__dict__["_read"]
            found = self.__dict__["operands"] = read(packed)
            return found

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields, for pickles and copies."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


_SHOWN = InstructionRecord.__annotations__.keys() - {"operands"}
SHOWN_OF_PLANS = tuple(name for name in RecordedPlan.__annotations__ if name in _SHOWN)
SHOWN_COUNTERS = tuple(name for name in COUNTERS if name in _SHOWN)
