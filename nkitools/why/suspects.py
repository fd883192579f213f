"""The instructions that may be wrong, as far as dependences and changed arguments show them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from nkitools.chip.element_boxes import boxes_text
from nkitools.chip.numerics import Array
from nkitools.record.run import Run
from nkitools.why.backward import Backward
from nkitools.why.changed_arguments import ChangedArguments, Influence
from nkitools.why.losses import Losses
from nkitools.why.meetings import Node
from nkitools.why.targets import Suspect, Target
from nkitools.why.ways_back import Leaf, Made, Ways

_MOST_LEAVES = 48  # reads of arguments whose influence is looked at
_MOST_PARTS = 24  # parts of such reads that the kernel is run with
_MOVES = ("dma", "tensor_copy", "load", "store")
"""The beginnings of the names of instructions that put values elsewhere."""


class Suspects:
    """The suspects for elements of a target that are wrong.

    ``right``: targets before it that are right. ``others``: all targets of the run.
    """

    def __init__(
        self, run: Run, target: Target, right: Sequence[Target], changes: ChangedArguments, others: Sequence[Target]
    ) -> None:
        self._target, self._changes, self._others = target, changes, others
        self._ways = Ways(run, right)
        self._records = run.all_records

    def of(self, element: tuple[int, ...]) -> Iterator[Suspect]:
        """Yield the suspects for an element, the likeliest one first."""
        whole = self._ways.back(self._target, element)
        region = self._ways.back(self._target, element, ends=True)
        inside = self._ways.suspicious(region)
        if not np.isfinite(self._target.got[element]):
            yield from self._not_finite(region, inside)
        elif self._changes.is_possible:
            found = self._by_influence(element, whole)
            yield from (each for each in found if each.beyond or each.node in inside)
        yield from self._by_place(region, inside)

    # --- by what changed arguments show -------------------------------------------------------------------------------

    def _by_influence(self, element: tuple[int, ...], whole: Backward) -> Iterator[Suspect]:
        leaves = self._ways.leaves(whole, self._changes.arguments())[:_MOST_LEAVES]
        what = f"{self._target.name}[{', '.join(map(str, element))}]"
        losses = Losses(self._ways, self._changes, whole, leaves, what)
        extra = [leaf for leaf in leaves if self._influence(leaf, element) is Influence.EXTRA]
        if leaves and len(extra) == len(leaves):
            yield from self._moved(whole)
        lost = self._unread(leaves, element)
        if not extra and not lost:
            extra, lost = self._parts(leaves, element)
        later = []
        for leaf in extra:
            suspect = self._of_extra(leaf, element, whole, what)
            if suspect is None:
                continue
            if self._reads_lost(suspect.node, lost, losses):
                later.append(suspect)
            else:
                yield suspect
        for name, where in lost.items():
            yield from losses.of(name, where)
        yield from later

    def _influence(self, leaf: Leaf, element: tuple[int, ...]) -> Influence:
        """Return whether what was read should not be there; the kernel runs only where that may be so."""
        needed = self._changes.reference(leaf.name, leaf.where)
        if abs(float(needed[element])) > 1e-6 * self._target.scale:
            return Influence.RIGHT
        return self._changes.influence(self._changes.both(leaf.name, leaf.where), element)

    def _unread(self, leaves: Sequence[Leaf], element: tuple[int, ...]) -> dict[str, Array]:
        """Return the elements of arguments that a value should be made of, and that are on no way to it."""
        found = {}
        for name, array in self._changes.arguments().items():
            read = np.zeros(array.shape, np.bool_)
            for leaf in leaves:
                if leaf.name == name:
                    read |= leaf.where
            lost = self._changes.needed(name, element, ~read)
            if lost.any():
                found[name] = lost
        return found

    def _parts(self, leaves: Sequence[Leaf], element: tuple[int, ...]) -> tuple[list[Leaf], dict[str, Array]]:
        """Return the parts of some reads that should not be there, and those without influence."""
        extra, lost = list[Leaf](), dict[str, Array]()
        todo = [leaf for leaf in leaves if leaf.where.any()]
        for _ in range(_MOST_PARTS):
            if not todo or extra or lost:
                break
            leaf = todo.pop(0)
            influence = self._changes.influence(self._changes.both(leaf.name, leaf.where), element)
            if influence is Influence.EXTRA:
                extra.append(leaf)
            elif influence is Influence.LOST:
                lost[leaf.name] = lost[leaf.name] | leaf.where if leaf.name in lost else leaf.where
            elif influence is Influence.OTHER:
                todo += [leaf.part(half) for half in _halves(leaf.where)]
        return extra, lost

    def _moved(self, whole: Backward) -> Iterator[Suspect]:
        """Yield the instruction that has put right values in a wrong place: they are in no other."""
        writers = [node for node in whole.visits if node[0] == self._target.number]
        writer = max(writers, key=_position, default=None)
        if writer is None:
            return
        row = self._records[writer[0]].row(writer[1])
        own = [each for each in row.writes() if each.storage == self._target.access.storage]
        if not own or not row.plan.name.startswith(_MOVES):
            return
        places = np.zeros(self._target.got.shape, np.bool_)
        memories = whole.memories[writer[0]]
        numbers = memories.element_of(self._target.access, memories.units_of(own[0]))
        places.reshape(-1)[numbers[numbers >= 0]] = True
        box = _box(places)
        if box is None:
            return
        block = self._target.got[box]
        for origin in _origins(self._target.want, block, self._target.scale):
            other = tuple(slice(at, at + size) for at, size in zip(origin, block.shape, strict=True))
            if other != box and bool(self._target.wrong[other].any()):
                where = np.zeros(places.shape, np.bool_)
                where[other] = True
                yield Suspect(writer, f"it has stored what belongs at {boxes_text(self._target.name, where)}")
                return

    def _of_extra(self, leaf: Leaf, element: tuple[int, ...], whole: Backward, what: str) -> Suspect | None:
        """Return the first instruction on the way that has brought what does not belong there.

        The elements that it has made are on no way to a value that should be made of that read.
        """
        change = self._changes.both(leaf.name, leaf.where, keeps_writes=True)
        moved = self._ways.changed_writes(self._changes.base.writes, change.writes)
        theirs: dict[Node, Array] = {}
        for way, is_right in self._legitimate(leaf, change.reference):
            for node, mask in self._ways.made_in(way, moved).items():
                if not is_right and not self._ways.reads_argument(node):
                    continue
                known = theirs.get(node)
                theirs[node] = mask | known if known is not None and known.shape == mask.shape else mask
        mine = self._ways.made_in(whole, moved)
        for node in sorted(mine, key=_position):
            known = theirs.get(node)
            if known is None or known.shape != mine[node].shape or (mine[node] & ~known).any():
                return Suspect(node, f"{what} should not be made of {boxes_text(leaf.name, leaf.where)}")
        return None

    def _legitimate(self, leaf: Leaf, needed: Array) -> Iterator[tuple[Backward, bool]]:
        """Yield the ways back from elements that should be made of a read, and are made by the reader.

        Beside a way: whether the elements of another target are right; else the way shows only that it may be read.
        """
        for target in (self._target, *self._others):
            if target is not self._target:
                if target.turn == self._target.turn and target.key == self._target.key:
                    continue
                needed = self._changes.reference(leaf.name, leaf.where, target)
            far = np.abs(needed)
            if needed.shape != target.got.shape or far.max(initial=0.0) <= 1e-6 * target.scale:
                continue
            wanted = far > 1e-6 * target.scale
            parts = [(wanted, True)] if target is self._target else [(wanted & ~target.wrong, True), (wanted, False)]
            for part, is_right in parts:
                back = self._ways.back_of(target, part) if part.any() else None
                if back is not None and any(node in back.visits for node in leaf.nodes):
                    yield back, is_right

    def _reads_lost(self, node: Node, lost: dict[str, Array], losses: Losses) -> bool:
        """Return whether a load reads what was lost, too, so that it is what comes after that chooses wrongly."""
        if not self._ways.reads_argument(node):
            return False
        named = {name: where for name, where in lost.items() if self._ways.reads_argument(node, name)}
        moved: Made = {}
        for name, where in named.items():
            moved |= losses.moved(name, where)
        return node in moved

    # --- where nothing else is known ----------------------------------------------------------------------------------

    def _not_finite(self, region: Backward, inside: Sequence[Node]) -> Iterator[Suspect]:
        """Yield what has made the operands of the first instruction whose result is not finite."""
        for node in inside:
            for write in self._changes.base.writes.get(node, ()):
                if write.value.dtype.names is not None or np.isfinite(write.value.astype(np.float64)).all():
                    continue
                reads = region.visits[node].reads.values()
                sources = [(read.number, writer) for read in reads for writer in read.writers if writer >= 0]
                makers = [each for each in sorted(sources, key=_position) if each in inside]
                if self._is_unary(region, node) and makers:
                    yield Suspect(makers[-1], "the next instruction makes a result that is not finite from its result")
                yield Suspect(node, "its result is the first one that is not finite")
                return

    def _by_place(self, region: Backward, nodes: Sequence[Node]) -> Iterator[Suspect]:
        """Yield the instructions of a way: those that combine elements first, those that move them last."""
        computing = [node for node in nodes if not self._name(node).startswith(_MOVES)]
        for node in reversed(computing):
            if not self._is_unary(region, node):
                yield Suspect(node, "it is the last one that has computed wrong values")
        for node in reversed(computing):
            yield Suspect(node, "it has computed wrong values")
        for node in reversed(nodes):
            yield Suspect(node, "it has written wrong values")

    def _is_unary(self, region: Backward, node: Node) -> bool:
        """Return whether an instruction makes an element of one element."""
        visit = region.visits.get(node)
        if visit is None:
            return False
        made = max((int(np.count_nonzero(mask)) for mask in visit.made.values()), default=1)
        return sum(int(np.count_nonzero(read.wanted)) for read in visit.reads.values()) <= made

    def _name(self, node: Node) -> str:
        return str(self._records[node[0]].row(node[1]).plan.name)


def _position(node: Node) -> int:
    return node[1]


def _halves(where: Array) -> list[Array]:
    """Return the two halves of a mask along its longest side; nothing for one element."""
    spans = [(int(each.min()), int(each.max()) + 1) for each in np.nonzero(where)]
    axis = max(range(where.ndim), key=lambda each: spans[each][1] - spans[each][0])
    first, last = spans[axis]
    if last - first < 2:
        return []
    middle = (first + last) // 2
    shape = [1] * where.ndim
    shape[axis] = where.shape[axis]
    before = (np.arange(where.shape[axis]) < middle).reshape(shape)
    return [where & before, where & ~before]


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
    room = tuple(slice(0, whole - size + 1) for size, whole in zip(block.shape, want.shape, strict=True))
    with np.errstate(all="ignore"):
        corner = block[(0,) * block.ndim]
        for origin in np.argwhere(np.abs(want[room] - corner) <= 1e-4 * scale)[:64].tolist():
            part = tuple(slice(at, at + size) for at, size in zip(origin, block.shape, strict=True))
            if bool((np.abs(want[part] - block) <= 1e-3 * scale).all()):
                yield tuple(origin)
