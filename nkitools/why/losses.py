"""The instruction that has lost what a value should be made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from nkitools.chip.element_boxes import boxes_text
from nkitools.chip.numerics import Array
from nkitools.why.backward import Backward
from nkitools.why.changed_arguments import ChangedArguments
from nkitools.why.meetings import Node
from nkitools.why.targets import Suspect
from nkitools.why.ways_back import Leaf, Made, Ways, bytes_at

_SLOTS = frozenset({"operand0", "operand1", "bias", "scale", "initial", "imm0", "imm1"})
"""Arguments of instructions that are a number, or a tensor with a number for each partition."""


class Losses:
    """The suspects for elements of arguments that a value should be made of, and is not."""

    def __init__(
        self, ways: Ways, changes: ChangedArguments, whole: Backward, leaves: Sequence[Leaf], what: str
    ) -> None:
        self._ways, self._changes, self._whole, self._leaves, self._what = ways, changes, whole, leaves, what

    def of(self, name: str, lost: Array) -> Iterator[Suspect]:
        """Yield the suspects for the lost elements of an argument, the likeliest one first."""
        moved = self.moved(name, lost)
        reason = f"{self._what} should be made of {boxes_text(name, lost)} too"
        loads = sorted({node for leaf in self._leaves if leaf.name == name for node in leaf.nodes}, key=_position)
        if not any(self._ways.reads_argument(node, name) for node in moved):
            yield from self._never_read(name, loads, reason)
            return
        yield from self._ignoring(moved, reason)
        yield from self._unread(moved, reason)
        if loads:
            yield Suspect(loads[-1], reason, beyond=True)

    def moved(self, name: str, lost: Array) -> Made:
        """Return the elements that the kernel makes of some elements of an argument."""
        change = self._changes.both(name, lost, keeps_writes=True)
        return self._ways.changed_writes(self._changes.base.writes, change.writes)

    def _never_read(self, name: str, loads: Sequence[Node], reason: str) -> Iterator[Suspect]:
        """Yield what has read an argument short: a load that reads elements twice, or else the loop around it."""
        lines = dict[int, list[Leaf]]()
        for leaf in self._leaves:
            if leaf.name != name:
                continue
            line = self._ways.line(leaf.nodes[0])
            is_twice = sum(self._ways.line(node) == line for node in leaf.nodes) > 1
            if is_twice or any((leaf.where & other.where).any() for other in lines.get(line, ())):
                yield Suspect(leaf.nodes[-1], f"{reason}; it has read other elements twice", beyond=True)
            lines.setdefault(line, []).append(leaf)
        for node in reversed(loads):
            line = self._ways.line(node)
            turns = [self._turn(each) for each in loads if self._ways.line(each) == line]
            counters = [name for name in self._turn(node) if len({turn.get(name) for turn in turns}) > 1]
            counters = counters or list(self._turn(node))
            if counters:
                yield Suspect(node, f"{reason}: the loop ends before", counters[-1], beyond=True)
            else:
                yield Suspect(node, reason, beyond=True)

    def _turn(self, node: Node) -> Mapping[str, int]:
        return self._changes.base.turns.get(node, {})

    def _ignoring(self, moved: Made, reason: str) -> Iterator[Suspect]:
        """Yield the instructions on the way that overwrite what was made of the lost elements, or read beside it."""
        spread: dict[tuple[int, int], set[int]] = {}
        affected = self._ways.made_in(self._whole, moved)
        for node in sorted({*self._whole.visits, *moved}, key=_position):
            if node not in affected and node in self._whole.visits:
                for access in self._ways.records[node[0]].row(node[1]).accesses():
                    held = spread.get((node[0], access.storage))
                    if not held:
                        continue
                    touched = bytes_at(access)
                    if access.written and not touched.isdisjoint(held):
                        yield Suspect(node, f"{reason}; it overwrites what was made of that")
                        held -= touched
                    elif not access.written and touched.isdisjoint(held):
                        yield Suspect(node, f"{reason}; it reads beside what was made of that")
            for access, mask in moved.get(node, ()):
                spread.setdefault((node[0], access.storage), set()).update(bytes_at(access, mask))

    def _unread(self, moved: Made, reason: str) -> Iterator[Suspect]:
        """Yield the instructions on the way that could read the last values made from the lost elements."""
        ends = [node for node in moved if not any(each in moved for each in self._ways.readers(node))]
        reason = f"{reason}; it does not read what was made of that"
        affected = self._ways.made_in(self._whole, moved)
        for end in sorted(ends, key=_position):
            access, _ = moved[end][0]
            later = [
                node
                for node in sorted(self._whole.visits, key=_position)
                if node[1] > end[1] and node not in affected and self._computes(node)
            ]
            is_column = access.layout.elements == access.layout.shape[0]
            fitting = [
                node
                for node in later
                if (self._has_slot(node) if is_column else self._copies(node, access.layout.shape))
            ]
            same = [node for node in later if self._writes_shape(node, access.layout.shape)]
            yield from (Suspect(node, reason) for node in (fitting[:1] or same[:1] or later[:1]))

    def _computes(self, node: Node) -> bool:
        """Return whether an instruction reads tensors of the kernel alone."""
        reads = [each for each in self._ways.records[node[0]].row(node[1]).accesses() if not each.written]
        return bool(reads) and not self._ways.reads_argument(node)

    def _has_slot(self, node: Node) -> bool:
        """Return whether an instruction takes a number where a column may stand."""
        plan = self._ways.records[node[0]].row(node[1]).plan
        return bool(_SLOTS & (set(plan.arguments) - set(plan.operands)))

    def _copies(self, node: Node, shape: tuple[int, ...]) -> bool:
        """Return whether an instruction copies a tile of a shape."""
        name = self._ways.records[node[0]].row(node[1]).plan.name
        return name in ("tensor_copy", "dma_copy") and self._writes_shape(node, shape)

    def _writes_shape(self, node: Node, shape: tuple[int, ...]) -> bool:
        return any(each.layout.shape == shape for each in self._ways.records[node[0]].row(node[1]).writes())


def _position(node: Node) -> int:
    return node[1]
