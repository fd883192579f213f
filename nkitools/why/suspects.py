"""The instruction that is to blame for a wrong element, as far as dependences and changed arguments show it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.record.dataflow.last_accesses import GIVEN
from nkitools.record.record import StorageRecord
from nkitools.record.rows import Access
from nkitools.record.run import Run
from nkitools.why.backward import Backward, Read
from nkitools.why.changed_arguments import Change, ChangedArguments, Influence
from nkitools.why.element_indices import form_of, indices_of
from nkitools.why.meetings import Node
from nkitools.why.targets import Target
from nkitools.why.traced_calls import Write

_MOST_LEAVES = 48  # reads of arguments whose influence is looked at


@dataclass(frozen=True)
class Suspect:
    """An instruction that may be wrong, and what says so. ``loop``: the counter of the loop that is, '' for none."""

    node: Node
    reason: str
    loop: str = ""


@dataclass(eq=False)
class Leaf:
    """Elements of an argument that some instructions have read on the way to a value."""

    name: str
    where: Array  # a mask of the argument
    nodes: list[Node]


class Suspects:
    """The suspects for elements of a target that are wrong.

    ``right``: targets before it that are not wrong.
    """

    def __init__(
        self, run: Run, target: Target, right: Sequence[Target], changes: ChangedArguments | None, *, others: Sequence[Target]
    ) -> None:
        self._run, self._target, self._right, self._changes, self._others = run, target, right, changes, others
        self._records = run.all_records
        self._cleared = self._nodes_of_right()

    def of(self, element: tuple[int, ...]) -> Iterator[Suspect]:
        """Yield the suspects for an element, the likeliest one first."""
        whole = self._way(self._target, element, ends=False)
        region = self._way(self._target, element, ends=True)
        nodes = sorted(region.visits, key=lambda node: node[1])
        inside = [node for node in nodes if node not in self._cleared] or nodes
        if self._changes is not None and self._changes.is_possible:
            found = list(self._by_influence(element, whole))
            yield from (each for each in found if each.node in inside)
        yield from self._by_place(inside)

    # --- ways back ----------------------------------------------------------------------------------------------------

    def _way(self, target: Target, element: tuple[int, ...], *, ends: bool) -> Backward:
        back = Backward(self._run)
        if ends:
            for each in self._right:
                back.right.setdefault((each.number, each.access.storage), []).append(each.before - 1)
        wanted = np.zeros(target.access.layout.shape, np.bool_)
        wanted[element] = True
        back.start(target.number, target.access, wanted, before=target.before)
        return back

    def _nodes_of_right(self) -> set[Node]:
        """Return the instructions that right intermediates were made by."""
        found = set[Node]()
        for each in self._right:
            back = Backward(self._run)
            back.start(each.number, each.access, np.ones(each.access.layout.shape, np.bool_), before=each.before)
            found |= back.visits.keys()
        return found

    def _leaves(self, back: Backward) -> list[Leaf]:
        """Return the elements of arguments at the beginnings of a way back, read by read."""
        found: dict[tuple[str, bytes], Leaf] = {}
        for node, visit in back.visits.items():
            for read in visit.reads.values():
                part = self._given(back, read)
                if part is None:
                    continue
                name, where = part
                leaf = found.setdefault((name, where.tobytes()), Leaf(name, where, []))
                leaf.nodes.append(node)
        return sorted(found.values(), key=lambda leaf: min(leaf.nodes, key=lambda node: node[1])[1])

    def _given(self, back: Backward, read: Read) -> tuple[str, Array] | None:
        """Return the elements of an argument that a read has met; None where it has met none."""
        units = read.writers.get(GIVEN)
        if units is None or self._changes is None:
            return None
        record = self._records[read.number]
        known = record.storages.get(read.access.storage)
        name = record.name_of(read.access.storage)
        array = self._changes.arguments().get(name)
        if array is None or known is None or known.site >= 0 or known.shape != array.shape:
            return None
        return name, _mask(back, read, known, units)

    # --- what changed arguments show ----------------------------------------------------------------------------------

    def _by_influence(self, element: tuple[int, ...], whole: Backward) -> Iterator[Suspect]:
        assert self._changes is not None
        leaves = self._leaves(whole)[:_MOST_LEAVES]
        extra = list[tuple[Leaf, Change]]()
        for leaf in leaves:
            reference = self._changes.reference(leaf.name, leaf.where)
            if abs(float(reference[element])) <= 1e-6 * self._target.scale:
                change = self._changes.both(leaf.name, leaf.where)
                if self._changes.influence(change, element) is Influence.EXTRA:
                    extra.append((leaf, change))
        moved = self._moved(whole, element)
        if moved is not None:
            yield moved
        for leaf, change in extra:
            suspect = self._of_extra(leaf, change, element, whole)
            if suspect is not None:
                yield suspect
        yield from self._of_lost(leaves, element, whole)

    def _moved(self, whole: Backward, element: tuple[int, ...]) -> Suspect | None:
        """Return the instruction that has put right values in a wrong place: no other place has them."""
        writer = max((node for node in whole.visits if node[0] == self._target.number), key=lambda each: each[1], default=None)
        if writer is None:
            return None
        row = self._records[writer[0]].row(writer[1])
        own = [each for each in row.writes() if each.storage == self._target.access.storage]
        if not own or not row.plan.name.startswith(("dma", "tensor_copy", "store")):
            return None
        places = np.zeros(self._target.got.shape, np.bool_)
        units = whole.memories[writer[0]].units_of(own[0])
        numbers = whole.memories[writer[0]].element_of(self._target.access, units)
        places.reshape(-1)[numbers[numbers >= 0]] = True
        box = _box(places)
        if box is None:
            return None
        block = self._target.got[box]
        for origin in _origins(self._target.want, block, self._target.scale):
            other = tuple(slice(at, at + size) for at, size in zip(origin, block.shape, strict=True))
            if other == box:
                continue
            if bool(self._target.wrong[other].any()):
                return Suspect(writer, f"it has stored what belongs at {_shown(other)}")
        return None

    def _of_extra(
        self, leaf: Leaf, change: Change, element: tuple[int, ...], whole: Backward
    ) -> Suspect | None:
        """Return the first instruction that has brought what does not belong there.

        It is the first one on the way whose elements are on no way of elements that do need what was read.
        """
        legit = self._legitimate(leaf, change)
        carriers = self._carriers(whole, leaf)
        for node in sorted(carriers, key=lambda each: each[1]):
            made = whole.visits[node].made
            theirs = None if legit is None else legit.visits.get(node)
            for result, mask in made.items():
                if theirs is None or result not in theirs.made or (mask & carriers[node][result] & ~theirs.made[result]).any():
                    where = _shown_mask(leaf.where)
                    return Suspect(node, f"{self._target.name}{_shown(element)} is not made of {leaf.name}{where}")
        return None

    def _legitimate(self, leaf: Leaf, change: Change) -> Backward | None:
        """Return the way back from an element that does need what was read; None where there is none."""
        assert self._changes is not None
        for target in (self._target, *self._others):
            needed = change.reference if target is self._target else self._changes.reference(leaf.name, leaf.where, target)
            if needed.shape != target.got.shape:
                continue
            far = np.abs(needed)
            if far.max(initial=0.0) <= 1e-6 * target.scale:
                continue
            for at in np.argsort(-far.reshape(-1), kind="stable")[:3].tolist():
                index = tuple(int(each) for each in np.unravel_index(at, far.shape))
                back = self._way(target, index, ends=False)
                if any(node in back.visits for node in leaf.nodes):
                    return back
        return None

    def _carriers(self, whole: Backward, leaf: Leaf) -> dict[Node, dict[str, Array]]:
        """Return the instructions on the way whose results are made of what was read, and nothing else besides."""
        found: dict[Node, dict[str, Array]] = {}
        for node in sorted(whole.visits, key=lambda each: each[1]):
            visit = whole.visits[node]
            sources = {
                (read.number, writer) if writer >= 0 else None
                for read in visit.reads.values()
                for writer in read.writers
            }
            if node in leaf.nodes or any(source in found for source in sources if source is not None):
                found[node] = {result: np.ones_like(mask) for result, mask in visit.made.items()}
        return found

    def _of_lost(self, leaves: Sequence[Leaf], element: tuple[int, ...], whole: Backward) -> Iterator[Suspect]:
        """Yield the instructions that have lost what the value should be made of."""
        changes = self._changes
        assert changes is not None
        for name, array in changes.arguments().items():
            read = np.zeros(array.shape, np.bool_)
            for leaf in leaves:
                if leaf.name == name:
                    read |= leaf.where
            lost = changes.needed(name, element, ~read)
            if not lost.any():
                lost = np.zeros(array.shape, np.bool_)
                for leaf in leaves:
                    if leaf.name == name:
                        change = changes.both(name, leaf.where)
                        if changes.influence(change, element) is Influence.LOST:
                            lost |= leaf.where
            if lost.any():
                yield from self._loss(name, lost, element, whole, leaves)

    def _loss(
        self, name: str, lost: Array, element: tuple[int, ...], whole: Backward, leaves: Sequence[Leaf]
    ) -> Iterator[Suspect]:
        assert self._changes is not None
        change = self._changes.both(name, lost, keeps_writes=True)
        reason = f"{self._target.name}{_shown(element)} should be made of {name}{_shown_mask(lost)} too"
        moved = self._changed_writes(change.writes)
        readers = [node for node in moved if self._reads_argument(node, name)]
        loads = [node for leaf in leaves if leaf.name == name for node in leaf.nodes]
        loads.sort(key=lambda node: node[1])
        if not readers:
            yield from self._never_read(name, lost, loads, leaves, reason)
            return
        yield from self._ignoring(moved, whole, reason)
        if loads:
            yield Suspect(loads[-1], reason)

    def _never_read(
        self, name: str, lost: Array, loads: Sequence[Node], leaves: Sequence[Leaf], reason: str
    ) -> Iterator[Suspect]:
        """Yield what has read an argument short: a load that reads the same elements twice, or the loop around it."""
        lines = dict[int, list[Leaf]]()
        for leaf in leaves:
            if leaf.name != name:
                continue
            line = self._line(leaf.nodes[0])
            twice = len({node for node in leaf.nodes if self._line(node) == line}) > 1
            if twice or any((leaf.where & other.where).any() for other in lines.get(line, ())):
                yield Suspect(max(leaf.nodes, key=lambda node: node[1]), reason)
            lines.setdefault(line, []).append(leaf)
        for node in reversed(loads):
            turns = [self._turn(each) for each in loads if self._line(each) == self._line(node)]
            counters = [name for name in self._turn(node) if len({turn.get(name) for turn in turns}) > 1]
            all_counters = list(self._turn(node))
            if counters or all_counters:
                yield Suspect(node, f"{reason}: its loop ends before", (counters or all_counters)[-1])
            else:
                yield Suspect(node, reason)

    def _ignoring(self, moved: Mapping[Node, list[tuple[Access, Array]]], whole: Backward, reason: str) -> Iterator[Suspect]:
        """Yield the instructions on the way that overwrite what is lost, or read beside it."""
        spread: dict[tuple[int, int], set[int]] = {}
        order = sorted({*whole.visits, *moved}, key=lambda node: node[1])
        dead = list[Node]()
        for node in order:
            row = self._records[node[0]].row(node[1])
            if node in moved:
                for access, mask in moved[node]:
                    units = self._bytes(node[0], access, mask)
                    spread.setdefault((node[0], access.storage), set()).update(units)
                dead.append(node)
                continue
            for access in row.accesses():
                held = spread.get((node[0], access.storage))
                if not held:
                    continue
                touched = self._bytes(node[0], access, np.ones(access.layout.shape, np.bool_))
                if access.written and not touched.isdisjoint(held):
                    yield Suspect(node, f"{reason}: it overwrites what was made of that")
                    held -= touched
                elif not access.written and touched.isdisjoint(held):
                    yield Suspect(node, f"{reason}: it reads beside what was made of that")
        lines = {self._line(node) for node in dead if not self._reads_argument(node, "")}
        for node in order:
            if dead and node[1] > dead[0][1] and node not in moved and self._line(node) in lines:
                yield Suspect(node, f"{reason}: what was made of that is not read")
        last = max((node[1] for node in dead), default=-1)
        for node in order:
            if node[1] > last and node not in moved and not self._reads_argument(node, ""):
                yield Suspect(node, f"{reason}: what was made of that is not read")

    def _changed_writes(self, now: Mapping[Node, list[Write]]) -> dict[Node, list[tuple[Access, Array]]]:
        """Return the writes whose values are others with changed arguments, with the elements that are."""
        assert self._changes is not None
        found: dict[Node, list[tuple[Access, Array]]] = {}
        for node, writes in now.items():
            before = self._changes.base.writes.get(node, ())
            for first, second in zip(before, writes, strict=False):
                if first.value.shape != second.value.shape or first.value.dtype.names is not None:
                    continue
                mine = self._access(node, first.access)
                if mine is None:
                    continue
                one, other = (each.value.astype(np.float64) for each in (first, second))
                with np.errstate(all="ignore"):
                    mask = ~((one == other) | (np.isnan(one) & np.isnan(other)))
                if mask.any():
                    found.setdefault(node, []).append((mine, mask))
        return found

    def _access(self, node: Node, seen: Access) -> Access | None:
        """Return the view of this run that another run's is."""
        if node[0] >= len(self._records) or node[1] >= self._records[node[0]].count:
            return None
        row = self._records[node[0]].row(node[1])
        same = [each for each in row.writes() if each.layout is seen.layout and each.byte_offset == seen.byte_offset]
        return same[0] if same else None

    def _bytes(self, number: int, access: Access, mask: Array) -> set[int]:
        """Return the first bytes of elements in their storage."""
        found = np.zeros(access.layout.shape, np.int64) + access.byte_offset
        for axis, (size, stride) in enumerate(zip(access.layout.shape, access.layout.strides, strict=True)):
            shape = [1] * len(access.layout.shape)
            shape[axis] = size
            found = found + (np.arange(size) * stride).reshape(shape)
        return set(found[np.broadcast_to(mask, found.shape)].tolist())

    def _reads_argument(self, node: Node, name: str) -> bool:
        """Return whether an instruction reads an argument, that of a name or any."""
        record = self._records[node[0]]
        for access in record.row(node[1]).accesses():
            known = record.storages.get(access.storage)
            if not access.written and known is not None and known.site < 0:
                if not name or record.name_of(access.storage) == name:
                    return True
        return False

    # --- where nothing else is known ----------------------------------------------------------------------------------

    def _by_place(self, nodes: Sequence[Node]) -> Iterator[Suspect]:
        """Yield the instructions of a way, those that compute first, the last one first."""
        for node in reversed(nodes):
            if not self._records[node[0]].row(node[1]).plan.name.startswith(("dma", "tensor_copy", "load", "store")):
                yield Suspect(node, "it has computed the wrong values last")
        for node in reversed(nodes):
            yield Suspect(node, "it has written the wrong values last")

    def _line(self, node: Node) -> int:
        return self._records[node[0]].site_at(node[1]).line

    def _turn(self, node: Node) -> dict[str, int]:
        assert self._changes is not None
        return self._changes.base.turns.get(node, {})


def _mask(back: Backward, read: Read, known: StorageRecord, units: Array) -> Array:
    """Return the elements of a tensor that have some units, as a mask of all of it."""
    memories = back.memories[read.number]
    unit = memories.unit(memories.memory_of(read.access.storage))
    first = memories.first_byte(read.access._replace(byte_offset=0))
    shape, item = form_of(known, read.access)
    found = np.zeros(shape, np.bool_)
    found[tuple(indices_of(known, shape, item, units * unit - first).T)] = True
    return found


def _box(mask: Array) -> tuple[slice, ...] | None:
    """Return the box that a mask is; None where it is none."""
    if not mask.any():
        return None
    found = tuple(slice(int(each.min()), int(each.max()) + 1) for each in np.nonzero(mask))
    return found if bool(mask[found].all()) else None


def _origins(want: Array, block: Array, scale: float) -> Iterator[tuple[int, ...]]:
    """Yield where in an array a block stands."""
    if any(size > whole for size, whole in zip(block.shape, want.shape, strict=True)):
        return
    corner = (0,) * block.ndim
    room = tuple(slice(0, whole - size + 1) for size, whole in zip(block.shape, want.shape, strict=True))
    with np.errstate(all="ignore"):
        for origin in np.argwhere(np.abs(want[room] - block[corner]) <= 1e-4 * scale)[:64].tolist():
            part = tuple(slice(at, at + size) for at, size in zip(origin, block.shape, strict=True))
            if bool((np.abs(want[part] - block) <= 1e-3 * scale).all()):
                yield tuple(origin)


def _shown(index: Sequence[int | slice]) -> str:
    parts = [f"{each.start}:{each.stop}" if isinstance(each, slice) else str(each) for each in index]
    return f"[{', '.join(parts)}]"


def _shown_mask(mask: Array) -> str:
    box = tuple(slice(int(each.min()), int(each.max()) + 1) for each in np.nonzero(mask))
    return _shown([each.start if each.stop == each.start + 1 else each for each in box])
