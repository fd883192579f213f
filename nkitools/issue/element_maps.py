"""Element maps: the operand elements that make each result element, stated by every instruction beside its cost.

Elements that an instruction leaves as they were are made of the destination's earlier value, which is then an operand
as well. Under a predicate both the earlier value and the new one are sources: the values of a predicate are not looked
at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nkitools.chip.numerics import Array
from nkitools.facts.light_classes import NamedTuple, dataclass
from nkitools.issue.element_rules import Rule, Shape, Values

# What engines keep from instruction to instruction, one element a lane: operands that have no tensor. Lane number k is
# partition number k of the instruction's tiles.
VECTOR_REGISTERS, SCALAR_REGISTERS = "vector reduce registers", "scalar reduce registers"
VECTOR_GENERATORS, GPSIMD_GENERATORS = "vector random generators", "gpsimd random generators"
STATES = frozenset({VECTOR_REGISTERS, SCALAR_REGISTERS, VECTOR_GENERATORS, GPSIMD_GENERATORS})


class From(NamedTuple):
    """An operand, by the parameter's name; of this core and rank unless another one is given."""

    operand: str
    rank: int | None = None  # of the run
    core: int | None = None  # of the two of a logical NeuronCore


@dataclass(frozen=True)
class Elements:
    """The operand elements that make the elements of each result of an instruction.

    Results and operands have the names of the instruction's parameters, or of the `STATES` of engines.
    """

    made: tuple[tuple[str, tuple[tuple[From, Rule], ...]], ...]

    @property
    def results(self) -> tuple[str, ...]:
        """The results, whether the call has them or not."""
        return tuple(result for result, _ in self.made)

    def of(self, result: str) -> tuple[tuple[From, Rule], ...]:
        """Return the operands of a result with their rules."""
        return dict(self.made)[result]

    def needs(self, result: str) -> tuple[str, ...]:
        """Return the operands whose values the exact answer for a result takes."""
        return tuple(name for _, rule in self.of(result) for name in rule.needs)

    def sources(
        self, result: str, wanted: Array, shapes: Mapping[str, Shape], values: Values | None = None
    ) -> dict[From, Array]:
        """Return masks of the elements of each operand from which the wanted elements of a result are computed.

        ``shapes``: of the call's tensors, and () for registers; operands without a shape, numbers or absent ones, are
        left out. Operands of other ranks are taken to have this rank's shapes. ``values``: of the operands that the
        result `needs`.
        """
        found: dict[From, Array] = {}
        for source, rule in self.of(result):
            shape = wanted.shape[:1] if source.operand in STATES else shapes.get(source.operand)
            if shape is not None:
                found[source] = rule.sources(wanted, shape, values or {})
        return found


def of_ranks(sources: Iterable[Iterable[tuple[int, int, Rule]]]) -> Elements:
    """Return the element map of a collective: for each destination the numbers of sources, their ranks and rules."""
    return Elements(
        tuple(
            (f"dsts[{number}]", tuple((From(f"srcs[{source}]", rank), rule) for source, rank, rule in each))
            for number, each in enumerate(sources)
        )
    )


def made(results: Mapping[str, Mapping[str, Rule]] | None = None, **more: Mapping[str, Rule]) -> Elements:
    """Return the element map of an instruction: for each result its operands, each with its rule."""
    named = {**(results or {}), **more}
    rules = {result: tuple((From(name), rule) for name, rule in each.items()) for result, each in named.items()}
    return Elements(tuple(rules.items()))
