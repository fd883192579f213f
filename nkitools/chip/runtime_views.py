"""Views whose address is decided while the kernel runs.

A register, a scalar or an element in SBUF decides it, or an index for each partition.

The value is read when an instruction uses the view, as the chip does it, not when the view is made.
"""

from __future__ import annotations

from typing import Any, NoReturn, Self

import numpy as np

from nkitools.chip.device_numbers import DeviceNumber
from nkitools.chip.dtypes import DType, int64
from nkitools.chip.indexing import Key
from nkitools.chip.memory_region import MemoryRegion
from nkitools.chip.numerics import Array
from nkitools.chip.scalars import NkiScalar
from nkitools.chip.strided_view import StridedView
from nkitools.chip.tensor import RUNTIME_VIEWS, NkiTensor, Place
from nkitools.chip.view_checks import describe, dimension, pattern_start, wrong, wrong_call
from nkitools.facts.light_classes import dataclass
from nkitools.rules.finding import not_modelled, refuse, report

_SHORT_REACH = 1 << 32  # bytes that an offset of 32 bits names (nki-scalar deep dive, NKI 0.7)


# What to do about an index out of bounds that is known when the kernel runs.
COMPUTED = "The index is a number of the chip: look at what was loaded or computed into it."


class OutOfBounds(Exception):
    """A run-time index that lies outside, for an instruction that may skip it."""


@dataclass(frozen=True)
class Term:
    """A run-time offset: ``source`` (register, scalar, (1, 1) tensor) times ``stride`` bytes; valid: 0 .. ``limit``."""

    source: DeviceNumber | NkiTensor
    stride: int
    limit: int

    def value(self, what: str) -> int:
        """Return the offset's value now."""
        if isinstance(self.source, DeviceNumber):
            return self.source.integer(what)
        return int(_scalar(self.source, what))


def _scalar(tensor: NkiTensor, what: str) -> int:
    if tensor.unwritten() is not None:
        refuse("NK401", f"{what} is addressed by {describe(tensor)}, which was never written", about=(tensor,))
    return int(tensor.read().reshape(-1)[0])


def checked_source(tensor: NkiTensor, source: Place, what: str) -> DeviceNumber | NkiTensor:
    """Return a run-time index: a register, or an integer tensor of one element in SBUF (NK201, NK301, NK609)."""
    if isinstance(source, DeviceNumber):
        return source
    if not isinstance(source, NkiTensor):
        wrong_call(
            tensor, f"{what} must be a register, a scalar or a (1, 1) tensor in SBUF, it is {type(source).__name__}"
        )
    if source.buffer is not MemoryRegion.sbuf:
        refuse("NK201", f"{what} must lie in SBUF, it is {describe(source)}", about=(source,))
    if source.size != 1:
        wrong_call(tensor, f"{what} must have one element, it is {describe(source)}")
    check_index(source, what)
    return source


def check_index(source: NkiTensor, what: str) -> None:
    """NK301, NK609: indices are integers, and do not lie at a run-time address themselves."""
    if not source.dtype.is_integer:
        refuse("NK301", f"{what} must be integers, it is {describe(source)}", about=(source,))
    if source.is_indirect():
        wrong_call(source, f"{what} must lie at an address known when the kernel is built; it has an index of its own")


class IndirectTensor(NkiTensor):
    """The common part of views with run-time addresses, which take no second index, access pattern or dtype."""

    __slots__ = ()

    def is_indirect(self) -> bool:
        """Return True: registers or tensors decide the address of this view."""
        return True

    def __getitem__(self, key: Key) -> Self:
        return self._indexed(key if type(key) is tuple else (key,))

    def same_place(self, other: StridedView) -> bool:
        """Not known before the kernel runs, but of a view and itself."""
        return self is other

    def ap(self, *args: Any, **kwargs: Any) -> NoReturn:
        """NK609, NK607: such a view cannot be indexed again; the reference does not say what happens to its index."""
        if any(isinstance(each, (NkiTensor, DeviceNumber)) for each in (*args, *kwargs.values())):
            _one_index(self)
        not_modelled(f"ap of {describe(self)}, which has a dynamic index, is not modelled")

    def _check_dtype(self, dtype: DType | None) -> None:
        """NK609: "Not supported after dynamic / vector select" (nki.language.NkiTensor.view, NKI 0.6)."""
        if dtype not in (None, self.dtype):
            wrong_call(self, f"a view with a dynamic index cannot be reinterpreted as {dtype}")


def _one_index(tensor: NkiTensor) -> NoReturn:
    wrong_call(tensor, "a view takes one dynamic index only; this one has its own already")


class DynamicTensor(IndirectTensor):
    """A strided view whose start is computed from its terms at each use."""

    __slots__ = ("base_offset", "lost", "terms")

    terms: tuple[Term, ...]
    base_offset: int
    lost: NkiTensor | None  # the index of a view that is read, where it was never written: nothing is known of the data

    @classmethod
    def of(cls, tensor: NkiTensor, *terms: Term) -> DynamicTensor:
        """``tensor`` moved by run-time offsets."""
        if tensor.is_indirect():
            _one_index(tensor)
        for term in terms if tensor.on_chip else ():
            if isinstance(term.source, DeviceNumber):
                term.source.check_width(f"an address in {describe(tensor)}")
        self = cls.__new__(cls)
        self._set(tensor.storage, tensor.array, tensor.dtype, tensor.byte_offset)
        self.base_offset = tensor.byte_offset
        self.terms = terms
        self.lost = None
        return self

    def _view(self, array: Array, byte_offset: int, dtype: DType | None = None) -> Self:
        self._check_dtype(dtype)
        view = super()._view(array, byte_offset, dtype)
        view.terms = self.terms
        view.lost = self.lost
        # An instruction that used this view has moved it: what is made of it begins at its base all the same.
        view.base_offset = byte_offset - (self.byte_offset - self.base_offset)
        return view

    @property
    def form(self) -> Any:
        """The layout, marked: some instructions need addresses that are known when the kernel is built."""
        return self.layout, DynamicTensor

    def settle(self, what: str, *, is_read: bool = False) -> None:
        """Move the view to the current value of its terms; OutOfBounds if it is outside.

        If the view is read (``is_read``) and its index was never written, it stays, and `lost` has the index.
        """
        offset, self.lost = self.base_offset, None
        for term in self.terms:
            if is_read and isinstance(term.source, NkiTensor) and term.source.unwritten() is not None:
                self.lost = term.source
                continue
            value = term.value(what)
            if not 0 <= value <= term.limit:
                raise OutOfBounds(f"index {value} of {describe(self)} lies outside 0..{term.limit}")
            offset += value * term.stride
            if value * term.stride >= _SHORT_REACH:
                _beyond_short_reach(self, term.source, what)
        self.array = self.storage.window(self.shape, self.dtype, offset, self.array.strides)
        self.byte_offset = offset
        self._layout = None


def _beyond_short_reach(tensor: NkiTensor, source: DeviceNumber | NkiTensor, what: str) -> None:
    """NK621: by the documents only an int64 scalar's offset reaches beyond 4 GB."""
    if isinstance(source, NkiScalar) and source.dtype is not int64:
        message = (
            f"{what}: a scalar of {source.dtype} moves {describe(tensor)} by 4 GB or more; the documents have this"
        )
        remedy = "Load the offset from a tensor of nl.int64."
        report("NK621", f"{message} for int64 alone", about=(tensor,), remedy=remedy)


_PATTERN = (
    "Look at the offset of .ap(), which counts elements from the beginning of the view, and at its pairs [step, "
    "count]: the last element is offset + the sum of step * (count - 1)."
)


class StrayTensor(DynamicTensor):
    """An access pattern that leaves its storage: its use is refused (NK402)."""

    __slots__ = ("complaint",)

    complaint: str

    def settle(self, what: str, *, is_read: bool = False) -> None:
        """NK402: the view points outside of memory."""
        refuse("NK402", f"{what}: {self.complaint}", about=(self,), remedy=_PATTERN)

    def _view(self, array: Array, byte_offset: int, dtype: DType | None = None) -> Self:
        self.settle("a view")
        return super()._view(array, byte_offset, dtype)

    def read(self) -> Array:
        """NK402."""
        self.settle("a read")
        return self.array

    def unwritten(self) -> Array | None:
        """NK402."""
        self.settle("a read")
        return None


class VectorTensor(IndirectTensor):
    """A view whose partitions each read or write the row that their own index names (gather and scatter)."""

    __slots__ = ("index", "rows")

    direct = False
    index: NkiTensor
    rows: NkiTensor

    @classmethod
    def of(cls, rows: NkiTensor, index: NkiTensor, count: int) -> VectorTensor:
        """``count`` of ``rows`` (all that may be chosen, in dimension 0), chosen by ``index``, column after column."""
        if index.buffer is not MemoryRegion.sbuf:
            refuse("NK201", f"vector_offset must lie in SBUF, it is {describe(index)}", about=(index,))
        check_index(index, "vector_offset")
        if index.size < count:
            wrong(rows, f"vector_offset, {describe(index)}, has fewer than the {count} indices that are used")
        self = cls.__new__(cls)
        shown = rows.storage.window(
            (count, *rows.shape[1:]), rows.dtype, rows.byte_offset, (0, *rows.array.strides[1:])
        )
        self._set(rows.storage, shown, rows.dtype, rows.byte_offset)
        self.rows = rows
        self.index = index
        return self

    @property
    def form(self) -> Any:
        """Return the layouts of the visible elements, of the elements to choose from, and of the index."""
        return self.layout, self.rows.layout, self.index.layout

    def same_place(self, other: StridedView) -> bool:
        """Return whether both views choose by the same index among the same rows."""
        return (
            isinstance(other, VectorTensor)
            and self.shape == other.shape
            and self.rows.same_place(other.rows)
            and self.index.same_place(other.index)
        )

    def _view(self, array: Array, byte_offset: int, dtype: DType | None = None) -> Self:
        self._check_dtype(dtype)
        # Of a single row NumPy's stride says nothing.
        if array.shape[:1] != self.shape[:1] or (array.strides[0] != 0 and array.shape[0] != 1):
            wrong_call(self, "the indirect dimension of a view cannot be indexed, sliced or moved again")
        view = super()._view(array, byte_offset, dtype)
        rows = self.rows
        inner = array.strides[1:]
        shape, strides = (rows.shape[0], *array.shape[1:]), (rows.array.strides[0], *inner)
        view.rows = rows._view(rows.storage.window(shape, rows.dtype, byte_offset, strides), byte_offset)
        view.index = self.index
        return view

    def settle(self, what: str) -> None:
        """Raise OutOfBounds if a row is outside; rows do not move."""
        invalid = self.first_invalid()
        if invalid is not None:
            raise OutOfBounds(f"partition {invalid[0]} of {describe(self.index)} is {invalid[1]}, out of bounds")

    def chosen(self) -> tuple[Array, Array]:
        """Return the row of each partition, and whether it is in bounds (out of bounds it reads as row 0)."""
        what = "an indirect access"
        if self.index.unwritten() is not None:
            message = f"{what} is addressed by {describe(self.index)}, which is partly unwritten"
            refuse("NK401", message, about=(self.index,))
        indices = self.index.read()
        flat = indices.reshape(indices.shape[0], -1).T.reshape(-1)[: self.shape[0]].astype(np.int64)
        valid = (flat >= 0) & (flat < self.rows.shape[0])
        return np.where(valid, flat, 0), valid

    def first_invalid(self) -> tuple[int, int] | None:
        """Partition and index of the first out-of-bounds row, or None."""
        _, valid = self.chosen()
        if valid.all():
            return None
        partition = int(np.argmin(valid))
        indices = self.index.read()
        return partition, int(indices.reshape(indices.shape[0], -1).T.reshape(-1)[partition])

    def read(self) -> Array:
        """Return the chosen rows, gathered."""
        rows, _ = self.chosen()
        return np.asarray(self.rows.array[rows])

    def places(self, where: Array | None = None) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """Return the indices of the values that a scatter writes (``where``: only these), and of their places.

        Rows out of bounds are left out. Of whole rows there is an index of dimension 0 only.
        """
        rows, valid = self.chosen()
        if where is not None:
            whole = where.reshape(len(where), -1)
            if (whole.any(axis=1) != whole.all(axis=1)).any():
                row, *others = np.nonzero(where & valid.reshape(-1, *[1] * (where.ndim - 1)))
                return (row, *others), (rows[row], *others)
            valid = valid & whole[:, 0]
        here = np.flatnonzero(valid)
        return (here,), (rows[here],)

    def among_rows(self, where: Array | None = None) -> Array:
        """Return a mask over all rows of the `places` of a scatter."""
        _, there = self.places(where)
        shape = self.rows.shape
        mask = np.zeros((*shape[: len(there)], *[1] * (len(shape) - len(there))), np.bool_)
        mask[there] = True
        return np.broadcast_to(mask, shape)

    def write(self, values: Array, where: Array | None = None) -> None:
        """Scatter ``values`` (``where``: only these elements) into the chosen rows, without those out of bounds."""
        here, there = self.places(where)
        self.rows.array[there] = values[here]

    def mark_written(self, where: Array | None = None) -> None:
        """Remember that the chosen rows (``where``: only these elements) were written."""
        self.storage.mark_written(self.rows.layout, self.rows.byte_offset, self.among_rows(where))

    def unwritten(self) -> Array | None:
        """Return a mask of the chosen elements that were never written, or None."""
        missing = self.storage.unwritten(self.rows.layout, self.rows.byte_offset)
        if missing is None:
            return None
        rows, valid = self.chosen()
        chosen = missing[rows] & valid.reshape(-1, *[1] * (len(self.shape) - 1))
        return np.asarray(chosen) if chosen.any() else None

    def where_it_reads(self, mask: Array) -> tuple[StridedView, Array]:
        """Return the rows to choose from, with a mask over them."""
        (rows, valid), where = self.chosen(), np.zeros(self.rows.shape, np.bool_)
        np.logical_or.at(where, rows[valid], mask[valid])
        return self.rows, where


def at_index(window: NkiTensor, index: Place, stride: int, limit: int, what: str) -> DynamicTensor:
    """``window``, moved by ``index`` times ``stride`` bytes when it is used."""
    return DynamicTensor.of(window, Term(checked_source(window, index, what), stride, limit))


def at_registers(window: NkiTensor, terms: list[tuple[DeviceNumber, int, int]]) -> DynamicTensor:
    """``window``, moved by registers times strides when it is used."""
    return DynamicTensor.of(window, *(Term(*term) for term in terms))


def moved(tensor: NkiTensor, window: NkiTensor, scalar_offset: Place, indirect_dim: int) -> DynamicTensor:
    """Return an access pattern that begins ``scalar_offset`` steps of ``tensor``'s dimension further on.

    The whole window must stay within the storage, on chip within its partitions.
    """
    dim = dimension(tensor, indirect_dim)
    if tensor.on_chip and dim == 0:
        wrong_call(tensor, "scalar_offset cannot move along the partition dimension of a tensor on chip")
    stride = tensor.array.strides[dim]
    storage = tensor.storage
    if tensor.on_chip:
        reach = sum((size - 1) * step for size, step in zip(window.shape[1:], window.array.strides[1:], strict=True))
        room = storage.free_bytes - window.byte_offset % storage.partition_bytes
    else:
        reach = sum((size - 1) * step for size, step in zip(window.shape, window.array.strides, strict=True))
        room = storage.nbytes - window.byte_offset
    limit = (room - reach - window.dtype.itemsize) // stride if stride else 0
    source = checked_source(tensor, scalar_offset, "scalar_offset")
    return DynamicTensor.of(window, Term(source, stride, min(limit, tensor.shape[dim] - 1)))


def stray(tensor: NkiTensor, shape: tuple[int, ...], dtype: DType, complaint: str) -> StrayTensor:
    """Return a view of that shape whose use is an error: ``complaint`` says how it leaves the storage."""
    self = StrayTensor.__new__(StrayTensor)
    inside = tensor.storage.window(shape, dtype, 0, (0,) * len(shape))
    self._set(tensor.storage, inside, dtype, tensor.byte_offset)
    self.base_offset, self.terms = tensor.byte_offset, ()
    self.complaint = complaint
    return self


def gathered(
    tensor: NkiTensor,
    pairs: list[tuple[int, int]],
    start: int,
    dtype: DType,
    vector_offset: NkiTensor,
    indirect_dim: int,
) -> VectorTensor:
    """Return an access pattern whose first dimension takes its rows from ``vector_offset``.

    The step between rows is that of ``tensor``'s dimension 0; the pattern's own first stride is ignored, as in the
    access pattern guide. Only rows that lie wholly within the storage can be chosen.
    """
    if dimension(tensor, indirect_dim) != 0:
        wrong_call(tensor, "vector_offset works along dimension 0 only (indirect_dim=0)")
    _check_rows(tensor, vector_offset)
    step = tensor.array.strides[0] // dtype.itemsize
    inner = pairs[1:]
    reach = start + sum(stride * (count - 1) for stride, count in inner)
    total = tensor.storage.nbytes // dtype.itemsize
    rows = min(tensor.shape[0], (total - 1 - reach) // step + 1 if step else 1)
    if rows < 1:
        message = f"ap reaches element {reach} of {describe(tensor)}, whose storage has {total}"
        refuse("NK402", message, about=(tensor,), remedy=_PATTERN)
    window = tensor.ap([(step, rows), *inner], offset=start - pattern_start(tensor, 0, dtype), dtype=dtype)
    return VectorTensor.of(window, vector_offset, pairs[0][1])


def chosen_rows(tensor: NkiTensor, vector_offset: NkiTensor) -> VectorTensor:
    """``tensor`` with dimension 0 chosen by ``vector_offset``, one row for each of its elements."""
    _check_rows(tensor, vector_offset)
    return VectorTensor.of(tensor, vector_offset, vector_offset.shape[0])


def _check_rows(tensor: NkiTensor, vector_offset: NkiTensor) -> None:
    """NK609, NK201: a tensor chooses among rows of an HBM tensor, once."""
    if not isinstance(vector_offset, NkiTensor):
        wrong_call(tensor, f"vector_offset must be a tensor in SBUF, it is {type(vector_offset).__name__}")
    if tensor.on_chip:
        refuse("NK201", f"vector_offset addresses rows of HBM tensors, not of {describe(tensor)}", about=(tensor,))
    if tensor.is_indirect():
        _one_index(tensor)


RUNTIME_VIEWS.at_index = at_index
RUNTIME_VIEWS.at_registers = at_registers
RUNTIME_VIEWS.moved = moved
RUNTIME_VIEWS.stray = stray
RUNTIME_VIEWS.gathered = gathered
RUNTIME_VIEWS.chosen_rows = chosen_rows
