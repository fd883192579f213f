"""One call of an instruction on the careful path: its operands, its plan, and the results of its checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nkitools.chip.core import Core
from nkitools.chip.numerics import Array
from nkitools.chip.tensor import NkiTensor
from nkitools.facts.light_classes import dataclass, field
from nkitools.issue.plan import DATA, WRITTEN, Plan
from nkitools.issue.undefined import NOTHING_UNDEFINED, Undefined

if TYPE_CHECKING:
    from nkitools.issue.full_precision import FullPrecision


@dataclass(slots=True, eq=False)
class CarefulCall:
    """One call; `resolve` makes it, `check` completes it, `perform` and `commit` read it.

    ``shown``, ``data``, ``tensors`` and ``outputs`` follow from the first fields. In full precision the instruction
    computes on float32 copies of operands: ``shown`` has these, beside the arguments themselves.
    """

    core: Core
    plan: Plan  # what the record keeps
    roles: tuple[int, ...]
    values: tuple[Any, ...]  # the arguments, each tensor of a list on its own
    meaning: Plan  # what computes
    skip: bool = False  # an index out of bounds leaves its row out silently, else that is NK402
    full: FullPrecision | None = None
    release: Callable[[], None] | None = None  # of views with tensor indirection, which are lined up for this call

    shown: tuple[Any, ...] = field(init=False)
    data: list[tuple[Any, Any, int]] = field(init=False)  # operands, as they are shown, and their roles
    tensors: list[tuple[NkiTensor, int]] = field(init=False)
    outputs: list[tuple[NkiTensor, NkiTensor]] = field(init=False)

    # What the checks find.
    lost: dict[str, Array] = field(default_factory=dict)  # the elements of results that rows out of bounds leave out
    beyond: bool = False  # an index was reported as out of bounds
    touches: tuple[Array | None, ...] = ()  # the lanes of each tensor that are read or written; None: all
    undefined: Undefined = NOTHING_UNDEFINED  # the lanes of the result that depend on unwritten elements
    fresh: Any = None  # the lanes of the destination that were never written: True, False or a mask

    def __post_init__(self) -> None:
        if self.full is not None:
            self.meaning = self.full.plan
        self.shown = self.values if self.full is None else self.full.shown
        triples = zip(self.values, self.shown, self.roles, strict=True)
        self.data = [(value, seen, role) for value, seen, role in triples if role in DATA]
        self.tensors = [(value, role) for value, _, role in self.data if isinstance(value, NkiTensor)]
        self.outputs = [
            (value, seen) for value, seen, role in self.data if role in WRITTEN and isinstance(value, NkiTensor)
        ]

    def kept(self, name: str, tensor: NkiTensor) -> Array | None:
        """Return the elements of a result that are written, None for all: of its mask, and of a gather's rows."""
        where: Array | None = getattr(tensor, "where", None)
        lost = self.lost.get(name)
        if lost is None:
            return where
        return ~lost if where is None else where & ~lost
