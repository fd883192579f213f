"""The format of the record's rows. No other file packs or unpacks a word of a row by hand.

An instruction is a row of 64-bit words: its head, ``~plan << 32 | site``, then two words for each tensor operand,
``storage << 32 | layout`` and a byte offset. Only heads are negative. The plan says how many operands there are. All of
them are numbers: the record keeps no arrays alive.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from operator import attrgetter
from struct import Struct
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from nkitools.chip.layout import LAYOUTS, Layout
from nkitools.chip.memory_region import MEMORY_NAMES
from nkitools.chip.numerics import Array
from nkitools.facts.light_classes import NamedTuple, dataclass
from nkitools.record.beside_rows import ascending
from nkitools.record.instruction_record import COUNTERS, Counters, RecordedPlan
from nkitools.record.kept_layouts import note_record
from nkitools.rules.finding import refuse

if TYPE_CHECKING:
    from nkitools.chip.tensor import NkiTensor

OPERAND_WORDS = 2

_HALF = 32
_LOW = (1 << _HALF) - 1
_SIGN = 1 << (_HALF - 1)
_WORD = 8  # bytes
_STRIDE = 16  # the rows of one instruction in so many are found at once, those between by walking
_FEW = 128  # words of rows, up to which a list of Python's takes less time than NumPy's arrays
_BLOCK = 1 << 17  # words that are read at once; no row is as long

Words = TypeVar("Words", int, Array)
"""A word, or an array of words."""


def operand_text(storage: str, layout: str, tensor: str) -> str:
    """Return the words of an operand as generated source; the three are expressions of that source."""
    return f"{storage}.id << {_HALF} | {layout}.id, {tensor}.byte_offset"


def own_text(sure: int, most: int) -> str:
    """Return as generated source whether the operands of ``words`` belong to the run; there is one at least.

    ``sure``: how many operands are always there, the first ones; ``most``: how many there can be.
    """
    least = "record.least_word"
    own = f"words[0] >= {least} <= words[-{OPERAND_WORDS}]"
    for operand in range(1, sure - (sure == most)):
        own += f" and words[{operand * OPERAND_WORDS}] >= {least}"
    if most > max(sure, 1) + 1:
        begin = max(sure, 1) * OPERAND_WORDS
        own += f" and (len(words) <= {begin + OPERAND_WORDS} or min(words[{begin}::{OPERAND_WORDS}]) >= {least})"
    return own


def head_of(plan: RecordedPlan, site: int) -> int:
    """Return the head of the row of an instruction."""
    return ~plan.id << _HALF | (site & _LOW)


# The function that makes the bytes of a row, by the number of its operands' words; "n" are the words of the machine,
# which Struct takes in two thirds of the time of "q".
PACKERS = tuple(Struct(f"{1 + words}n").pack for words in range(32 * OPERAND_WORDS + 1))


def words_of(tensors: Iterable[NkiTensor]) -> list[int]:
    """Return the words of some operands, one after the other."""
    words: list[int] = []
    for tensor in tensors:
        words.append(tensor.storage.id << _HALF | (tensor._layout or tensor.layout).id)
        words.append(tensor.byte_offset)
    return words


def operand_count(words: Sequence[int]) -> int:
    """Return the number of operands that these words describe."""
    return len(words) // OPERAND_WORDS


def words_of_view(storage: int, layout: Layout, byte_offset: int) -> tuple[int, int]:
    """Return the words of an operand that lies there."""
    return storage << _HALF | layout.id, byte_offset


def storages_of(words: Sequence[int]) -> list[int]:
    """Return the storages of operands' words, operand by operand."""
    return [word >> _HALF for word in words[::OPERAND_WORDS]]


def is_destination(storage: int, words: Sequence[int]) -> bool:
    """Return whether the first of some operands lies in a storage."""
    return bool(words) and words[0] >> _HALF == storage


def with_destination(words: Sequence[int], others: Sequence[int]) -> list[int]:
    """Return the words of an instruction's operands with the first operand of another instruction as their first."""
    return [*others[:OPERAND_WORDS], *words[OPERAND_WORDS:]]


def plan_of(heads: Words) -> Words:
    """Return the number of the plan in a head, or in each of an array of heads."""
    return ~(heads >> _HALF)


def head_places(words: Array) -> Array:
    """Return the index in the words of all rows at which each instruction's row begins."""
    return (words < 0).nonzero()[0]


def _older_operands(words: Array, limit: int) -> Iterator[tuple[int, int, int]]:
    """Yield the operands of some rows whose first word is less than ``limit``, in order.

    Each is the number of its row, the index at which the row begins, and the number of the operand.
    """
    heads = head_places(words)
    lengths = np.diff(heads, append=words.size)
    rows = np.repeat(np.arange(heads.size), lengths)
    inside = np.arange(words.size) - heads[rows] - 1  # the place of each word among those of its operands
    found = ((words < limit) & (inside >= 0) & (inside % OPERAND_WORDS == 0)).nonzero()[0]
    rows = rows[found]
    yield from zip(rows.tolist(), heads[rows].tolist(), (inside[found] // OPERAND_WORDS).tolist(), strict=True)


def site_of(heads: Words) -> Words:
    """Return the site in a head, or in each of an array of heads; -1 for none."""
    return ((heads & _LOW) ^ _SIGN) - _SIGN


def storage_column(words: Array) -> Array:
    """Return the storage in each operand's first word."""
    return words >> _HALF


def layout_column(words: Array) -> Array:
    """Return the number of the layout in each operand's first word."""
    return words & _LOW


def narrow_columns(words: Array) -> tuple[Array, Array]:
    """Return the storage and the number of the layout in each operand's first word, as numbers of 32 bits."""
    storages, layouts = np.empty(words.size, np.int32), np.empty(words.size, np.int32)
    np.right_shift(words, _HALF, out=storages, casting="unsafe")
    np.bitwise_and(words, _LOW, out=layouts, casting="unsafe")
    return storages, layouts


def operand_place(starts: Array, operands: Array) -> Array:
    """Return the indices at which operands begin, from the beginnings of their rows and their numbers in the rows."""
    return np.asarray(starts + 1 + OPERAND_WORDS * operands)


def operand_at(places: Array, positions: Array) -> Array:
    """Return the numbers, counted through all rows, of the operands at ``places`` in the rows at ``positions``."""
    return np.asarray((places - positions - 1) // OPERAND_WORDS)


class Access(NamedTuple):
    """The place of an operand of an issued instruction."""

    storage: int
    layout: Layout
    byte_offset: int  # of the view's first element in its storage
    written: bool


def packed_operands(packed: bytes) -> list[bytes]:
    """Return the parts of a packed row that describe its operands."""
    step = OPERAND_WORDS * _WORD
    return [packed[at : at + step] for at in range(_WORD, len(packed), step)]


def access_of(packed: bytes, written: bool) -> Access:
    """Return the view of an operand of a packed row."""
    word, byte_offset = _unpacked(packed)
    return Access(word >> _HALF, LAYOUTS[word & _LOW], byte_offset, written)


def _unpacked(packed: bytes) -> array[int]:
    return array("q", packed)


class Row(NamedTuple):
    """One instruction as its row says it."""

    position: int
    plan: RecordedPlan
    site: int  # -1 for none
    words: Sequence[int]  # of the operands

    def storages(self) -> list[int]:
        """Return the storage of each operand."""
        return storages_of(self.words)

    def access(self, operand: int) -> Access:
        """Return the view of the operand with this number."""
        at = OPERAND_WORDS * operand
        word = self.words[at]
        return Access(word >> _HALF, LAYOUTS[word & _LOW], self.words[at + 1], self.plan.written[operand])

    def accesses(self) -> list[Access]:
        """Return the views of the operands."""
        return [self.access(operand) for operand in range(len(self.words) // OPERAND_WORDS)]

    def writes(self) -> list[Access]:
        """Return the views that the instruction writes to; [] if it only names its operands."""
        if self.plan.names_only:
            return []
        return [self.access(operand) for operand, is_written in enumerate(self.plan.written) if is_written]


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, and the length of the rows of its instructions."""

    plan: RecordedPlan
    words: int
    packed: Callable[..., bytes]  # the words of a row as its bytes

    @classmethod
    def of(cls, plan: RecordedPlan, operands: int | None = None) -> Planned:
        """Return a plan with the length of its rows, for its own number of operands or for ``operands``."""
        words = 1 + OPERAND_WORDS * (len(plan.written) if operands is None else operands)
        return cls(plan, words, _packer(words))


@cache
def _packer(words: int) -> Callable[..., bytes]:
    return PACKERS[words - 1] if words <= len(PACKERS) else Struct(f"{words}n").pack


counters_of = attrgetter(*COUNTERS)
"""The counters of the next instruction of some rows."""

# `Rows.add` as generated source, for a plan and a site that the run has met, with operands that belong to it.
ROW_LINES = (
    *[f"record.counted[{name!r}].append(record.{name})" for name in COUNTERS],
    "record.row_words.frombytes(packers[len(words)](head, *words))",
)


class Rows(Counters):
    """The instructions of one run, a row and counters each."""

    _starts: array[int] | None = None

    def __init__(self) -> None:
        self.row_words = array("q")
        self.counted = {name: array("i") for name in COUNTERS}
        self.states = self.counted["loop"]  # the loop state of each instruction
        self.plans: dict[int, Planned] = {}
        self.oldest = 1 << 62  # of the run's storages, whose ids only grow
        self.least_word = self.oldest  # the least word of an operand of this run
        note_record(self)

    def count_with(self, counters: int | tuple[int, ...]) -> None:
        """Let the next instruction have the counters that `counters_of` has returned."""
        for name, number in zip(COUNTERS, (counters,) if isinstance(counters, int) else counters, strict=True):
            setattr(self, name, number)

    def begin_storage(self, storage: int) -> None:
        """Let operands lie in this storage: it belongs to the run."""
        self.oldest = storage
        self.least_word = storage << _HALF

    def layout_numbers(self) -> set[int]:
        """Return the numbers of the layouts in the rows, and others that byte offsets look like."""
        words = np.frombuffer(self.row_words.tobytes(), np.int64)
        return set(ascending(layout_column(words[words >= 0])).tolist())

    def add(self, plan: RecordedPlan, site: int, operands: list[int]) -> None:
        """Add an instruction; ``operands`` are the words of its operands.

        NK611 for an operand that is older than this run.
        """
        planned = self.plans.get(plan.id)
        if planned is None:
            planned = self.plans[plan.id] = Planned.of(plan, operand_count(operands))
        for name, numbers in self.counted.items():
            numbers.append(getattr(self, name))
        self.row_words.frombytes(planned.packed(head_of(plan, site), *operands))
        if operands and min(operands[::OPERAND_WORDS]) < self.least_word:
            self.check_ages(plan, operands)

    def numbered_rows(self) -> Hashable:
        """Return all rows, with the storages of their operands numbered from the oldest on."""
        # Heads are negative, and no byte offset is as large as the word of an operand, whose storage stands in front.
        least = self.least_word
        if len(self.row_words) <= _FEW:
            return tuple([word - least if word >= least else word for word in self.row_words])
        words = np.array(self.row_words, np.int64)
        words[words >= least] -= least
        return words.tobytes()

    def leave_out_unfinished(self) -> None:
        """Leave out an instruction that Ctrl-C came into, which has counters and no words yet."""
        whole = head_places(np.array(self.row_words)).size
        for numbers in self.counted.values():
            del numbers[whole:]

    def check_ages(self, plan: RecordedPlan, operands: list[int]) -> None:
        """Refuse an instruction with an operand older than this run (NK611)."""
        for position, word in enumerate(operands[::OPERAND_WORDS]):
            if word < self.least_word:
                layout = LAYOUTS[word & _LOW]
                refuse(
                    "NK611",
                    f"{plan.name}: operand {position} ({MEMORY_NAMES[layout.memory]}, {layout.dtype} "
                    f"{list(layout.shape)}) is a tensor of another run, which has ended",
                    remedy="Make tensors in the kernel that uses them, and pass data between kernels as arrays.",
                )

    def fill(self, columns: Mapping[str, Array], layouts: Array) -> None:
        """Take the instructions out of columns, which the plans of the record belong to.

        The columns are ``plan``, ``site`` and the counters of each instruction; ``storage``, ``layout`` (a place in
        ``layouts``, which holds numbers) and ``byte_offset`` of each operand. ValueError for operands too few or many.
        """
        words = np.array([planned.words for planned in self.plans.values()], np.int64)
        lengths = words[columns["plan"]]
        rows = np.empty(int(lengths.sum()), np.int64)
        starts = np.cumsum(lengths) - lengths
        rows[starts] = ~columns["plan"] << _HALF | (columns["site"] & _LOW)
        of_operands = np.ones(rows.size, np.bool_)
        of_operands[starts] = False
        firsts = columns["storage"] << _HALF | layouts[columns["layout"]]
        rows[of_operands] = np.stack([firsts, columns["byte_offset"]], axis=1).reshape(-1)
        self.row_words = array("q", rows.tobytes())
        self.counted = {name: array("i", columns[name].astype(np.int32).tobytes()) for name in COUNTERS}
        self.states = self.counted["loop"]

    @property
    def count(self) -> int:
        """Number of instructions issued."""
        return len(self.states)

    def row(self, position: int) -> Row:
        """Return the instruction at ``position``."""
        return self._row_from(self._start(position), position)

    def _row_from(self, start: int, position: int) -> Row:
        """Return the instruction at ``position``, whose row begins at ``start``."""
        head = self.row_words[start]
        planned = self.plans[~(head >> _HALF)]
        return Row(position, planned.plan, site_of(head), self.row_words[start + 1 : start + planned.words])

    def rows_between(self, first: int = 0, last: int | None = None) -> Iterator[Row]:
        """Yield the instructions from the position ``first`` to the one before ``last``, or to the end."""
        last = self.count if last is None else last
        if first >= last:
            return
        words, plans, start = self.row_words, self.plans, self._start(first)
        for position in range(first, last):
            head = words[start]
            planned = plans[~(head >> _HALF)]
            end = start + planned.words
            yield Row(position, planned.plan, site_of(head), words[start + 1 : end])
            start = end

    def packed_rows(self, first: int, last: int) -> Iterator[tuple[int, bytes]]:
        """Yield head and bytes of the rows of the instructions from ``first`` to the one before ``last``."""
        if first >= last:
            return
        start = self._start(first)
        behind = len(self.row_words) if last >= self.count else self._start(last)
        while first < last:
            packed = self.row_words[start : min(start + _BLOCK, behind)].tobytes()
            words = np.frombuffer(packed, np.int64)
            places = head_places(words)
            ends = np.append(places, words.size) if start + _BLOCK >= behind else places
            edges = (ends * _WORD).tolist()
            for head, (begin, end) in zip(words[places].tolist(), pairwise(edges), strict=False):
                yield head, packed[begin:end]
            first += len(edges) - 1
            start += edges[-1] // _WORD

    def written_by(self, packed: bytes) -> tuple[bool, ...]:
        """Return for each operand of a packed row whether it is an output."""
        return self.plans[plan_of(_unpacked(packed[:_WORD])[0])].plan.written

    def accesses_before(self, storage: int, first: int, last: int) -> Iterator[tuple[Row, int]]:
        """Yield the instructions from ``first`` to the one before ``last`` with each operand older than a storage."""
        limit = storage << _HALF
        if first >= last:
            return
        begin = self._start(first)
        end = len(self.row_words) if last == self.count else self._start(last)
        for at, start, number in _older_operands(np.array(self.row_words[begin:end]), limit):
            yield self._row_from(begin + start, first + at), number

    def plan_at(self, position: int) -> Any:
        """Return the plan of the instruction at ``position``."""
        return self.plans[plan_of(self.row_words[self._start(position)])].plan

    def accesses(self, position: int) -> list[Access]:
        """Return the views of the operands of the instruction at ``position``."""
        return self.row(position).accesses()

    def _start(self, position: int) -> int:
        """Return the index at which the row of an instruction begins."""
        if not self._starts:
            self._starts = array("q", [0])
        known = self._starts
        if len(known) <= position // _STRIDE:
            begin = known[-1]
            heads = head_places(np.array(self.row_words[begin:])) + begin
            known.frombytes(heads[_STRIDE::_STRIDE].tobytes())
        return self._walk(known[position // _STRIDE], position % _STRIDE)

    def keep_starts(self, starts: Array) -> None:
        """Keep the indices at which rows begin, if they were computed for all rows at once."""
        self._starts = array("q", starts[::_STRIDE].tobytes())

    def _walk(self, start: int, steps: int) -> int:
        for _ in range(steps):
            start += self.plans[plan_of(self.row_words[start])].words
        return start
