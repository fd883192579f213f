"""The ways back from wrong elements: to the arguments that they were made of, and to tensors known to be right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.record.dataflow.last_accesses import GIVEN
from nkitools.record.record import StorageRecord
from nkitools.record.rows import Access
from nkitools.record.run import Run
from nkitools.why.backward import Backward
from nkitools.why.element_indices import form_of, indices_of
from nkitools.why.meetings import Node
from nkitools.why.targets import Target
from nkitools.why.traced_calls import Write
from nkitools.why.visits import Read

Made = dict[Node, list[tuple[Access, Array]]]
"""The elements that instructions have written, as views with masks."""


@dataclass(eq=False)
class Leaf:
    """Elements of an argument that some instructions have read on the way to a value."""

    name: str
    where: Array  # a mask of the argument
    nodes: list[Node]

    def part(self, where: Array) -> Leaf:
        """Return some of the elements, read by the same instructions."""
        return Leaf(self.name, where, self.nodes)


class Ways:
    """The ways back from elements of a run. ``right``: tensors that held the right values; a way may end there."""

    def __init__(self, run: Run, right: Sequence[Target]) -> None:
        self.run, self.records = run, run.all_records
        self._right = right
        self._cleared: dict[Node, dict[str, Array]] = {}
        for each in right:
            back = Backward(run)
            back.start(each.number, each.access, np.ones(each.access.layout.shape, np.bool_), before=each.before)
            for node, visit in back.visits.items():
                known = self._cleared.setdefault(node, {})
                for result, mask in visit.made.items():
                    known[result] = known[result] | mask if result in known else mask

    def back(self, target: Target, element: tuple[int, ...], *, ends: bool = False) -> Backward:
        """Return the way back from an element of a target; ``ends``: to what is right."""
        wanted = np.zeros(target.access.layout.shape, np.bool_)
        wanted[element] = True
        return self.back_of(target, wanted, ends=ends)

    def back_of(self, target: Target, wanted: Array, *, ends: bool = False) -> Backward:
        """Return the way back from some elements of a target; ``ends``: to what is right."""
        back = Backward(self.run)
        if ends:
            for each in self._right:
                back.right.setdefault((each.number, each.access.storage), []).append(each.before - 1)
        back.start(target.number, target.access, wanted, before=target.before)
        return back

    def suspicious(self, back: Backward) -> list[Node]:
        """Return the instructions on a way, in order, without those whose elements have made what is right."""
        nodes = sorted(back.visits, key=_position)
        return [node for node in nodes if not self._is_cleared(node, back)] or nodes

    def _is_cleared(self, node: Node, back: Backward) -> bool:
        known = self._cleared.get(node, {})
        return all(
            result in known and not (mask & ~known[result]).any() for result, mask in back.visits[node].made.items()
        )

    def leaves(self, back: Backward, arguments: Mapping[str, Array]) -> list[Leaf]:
        """Return the elements of arguments at the beginnings of a way back, read by read."""
        found: dict[tuple[str, bytes], Leaf] = {}
        for node, visit in back.visits.items():
            for read in visit.reads.values():
                part = self._given(back, read, arguments)
                if part is not None:
                    name, where = part
                    found.setdefault((name, where.tobytes()), Leaf(name, where, [])).nodes.append(node)
        for leaf in found.values():
            leaf.nodes.sort(key=_position)
        return sorted(found.values(), key=lambda leaf: leaf.nodes[0][1])

    def _given(self, back: Backward, read: Read, arguments: Mapping[str, Array]) -> tuple[str, Array] | None:
        """Return the elements of an argument that a read has met; None where it has met none."""
        units = read.writers.get(GIVEN)
        if units is None:
            return None
        record = self.records[read.number]
        known = record.storages.get(read.access.storage)
        name = record.name_of(read.access.storage)
        array = arguments.get(name)
        if array is None or known is None or known.site >= 0 or known.shape != array.shape:
            return None
        return name, _mask(back, read, known, units)

    def made_in(self, back: Backward, moved: Made) -> dict[Node, Array]:
        """Return for the instructions on a way which of the elements that they made for it are among ``moved``."""
        found = {}
        for node, visit in back.visits.items():
            for access, mask in moved.get(node, ()):
                for result, made in visit.made.items():
                    if visit.results.get(result) == access and (made & mask).any():
                        found[node] = made & mask
        return found

    def changed_writes(self, before: Mapping[Node, list[Write]], now: Mapping[Node, list[Write]]) -> Made:
        """Return the writes of another run whose values are others than before, as views of this one."""
        found: Made = {}
        for node, writes in now.items():
            for first, second in zip(before.get(node, ()), writes, strict=False):
                mine = self._access(node, first.access)
                if mine is None or first.value.shape != second.value.shape or first.value.dtype.names is not None:
                    continue
                one, other = first.value.astype(np.float64), second.value.astype(np.float64)
                with np.errstate(all="ignore"):
                    mask = ~((one == other) | (np.isnan(one) & np.isnan(other)))
                if mask.any():
                    found.setdefault(node, []).append((mine, mask))
        return found

    def _access(self, node: Node, seen: Access) -> Access | None:
        """Return the view of this run that another run's is."""
        if node[0] >= len(self.records) or node[1] >= self.records[node[0]].count:
            return None
        views = self.records[node[0]].row(node[1]).writes()
        same = [each for each in views if each.layout is seen.layout and each.byte_offset == seen.byte_offset]
        return same[0] if same else None

    def line(self, node: Node) -> int:
        """Return the author's line of an instruction."""
        return self.records[node[0]].site_at(node[1]).line

    def reads_argument(self, node: Node, name: str = "") -> bool:
        """Return whether an instruction reads an argument, that of a name or any."""
        record = self.records[node[0]]
        for access in record.row(node[1]).accesses():
            known = record.storages.get(access.storage)
            is_argument = not access.written and known is not None and known.site < 0
            if is_argument and (not name or record.name_of(access.storage) == name):
                return True
        return False

    def readers(self, node: Node) -> list[Node]:
        """Return the instructions that have read what an instruction wrote."""
        flow, bases = self.run.dependences.flow, self.run.dependences.bases
        found = np.flatnonzero(flow.sources == bases[node[0]] + node[1])
        rows = np.searchsorted(flow.starts, found, "right") - 1
        numbers = np.searchsorted(bases, rows, "right") - 1
        return [(int(number), int(row) - bases[int(number)]) for number, row in zip(numbers, rows, strict=True)]


def _position(node: Node) -> int:
    return node[1]


def bytes_at(access: Access, mask: Array | None = None) -> set[int]:
    """Return the first bytes of a view's elements in their storage."""
    found = np.zeros(access.layout.shape, np.int64) + access.byte_offset
    for axis, (size, stride) in enumerate(zip(access.layout.shape, access.layout.strides, strict=True)):
        shape = [1] * len(access.layout.shape)
        shape[axis] = size
        found = found + (np.arange(size) * stride).reshape(shape)
    return set((found if mask is None else found[np.broadcast_to(mask, found.shape)]).reshape(-1).tolist())


def _mask(back: Backward, read: Read, known: StorageRecord, units: Array) -> Array:
    """Return the elements of a tensor that have some units, as a mask of all of it."""
    memories = back.memories[read.number]
    unit = memories.unit(memories.memory_of(read.access.storage))
    first = memories.first_byte(read.access._replace(byte_offset=0))
    shape, item = form_of(known, read.access)
    found = np.zeros(shape, np.bool_)
    found[tuple(indices_of(known, shape, item, units * unit - first).T)] = True
    return found
