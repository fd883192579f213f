"""Tensor indirection (NeuronCore-v4): a view whose columns are chosen by an index, equally for all partitions.

The layout of the offsets in the index depends on the engine that uses the view: the instruction sets the number of
partitions in a group before it reads or writes.
"""

from __future__ import annotations

from typing import Any, NoReturn, Self

import numpy as np

from nkitools.chip.dtypes import DType
from nkitools.chip.memory_region import MemoryRegion
from nkitools.chip.numerics import Array
from nkitools.chip.runtime_views import IndirectTensor, check_index
from nkitools.chip.tensor import RUNTIME_VIEWS, NkiTensor, Place
from nkitools.chip.view_checks import describe, integer, wrong, wrong_call
from nkitools.rules.finding import not_modelled, refuse


class ColumnTensor(IndirectTensor):
    """Columns of an on-chip tensor, (partitions, offsets): offset i is ``index[i % group, i // group]``.

    Read, it gathers; written, it scatters, and of two equal offsets the later one stays.
    """

    __slots__ = ("columns", "index", "offsets")

    direct = False
    columns: NkiTensor  # all that may be chosen: (partitions, elements of a partition)
    index: NkiTensor
    offsets: Array | None  # the column of each element, while an instruction uses the view

    @classmethod
    def of(cls, tensor: NkiTensor, index: NkiTensor, num_elem: int | None) -> ColumnTensor:
        """``tensor.indirect(index, num_elem)``. Errors: NK109, NK201, NK301, NK607, NK609."""
        count = _checked_count(tensor, index, num_elem)
        columns = tensor if tensor.ndim == 2 else tensor.reshape((tensor.shape[0], -1))
        shape, strides = (tensor.shape[0], count), (columns.array.strides[0], 0)
        self = cls.__new__(cls)
        shown = tensor.storage.window(shape, tensor.dtype, tensor.byte_offset, strides)
        self._set(tensor.storage, shown, tensor.dtype, tensor.byte_offset)
        self.columns = columns
        self.index = index
        self.offsets = None
        return self

    @property
    def form(self) -> Any:
        """Return the layouts of the visible elements, of the elements to choose from, and of the index."""
        return self.layout, self.columns.layout, self.index.layout, ColumnTensor

    def _view(self, array: Array, byte_offset: int, dtype: DType | None = None) -> NoReturn:
        wrong_call(self, "a view with tensor indirection is final: no other view is made of it")

    def select(self, dim: int, index: int | Place) -> Self:
        """NK609: final as well."""
        self._view(self.array, self.byte_offset)

    def line_up(self, group: int) -> None:
        """Read the offsets for an engine whose turn takes ``group`` partitions. Errors: NK401, NK402, NK607."""
        count, room = self.shape[1], self.columns.shape[1]
        table, used = self._table(group)
        self._check_groups(table, used, group)
        found = table[:group].T.reshape(-1)[:count].astype(np.int64)
        outside = np.flatnonzero((found < 0) | (found >= room))
        if outside.size:
            first = int(outside[0])
            message = (
                f"offset {first} of {describe(self.index)} is {int(found[first])}, out of bounds for the {room} "
                f"elements per partition of {describe(self.columns)}"
            )
            refuse("NK402", message, about=(self.index, self.columns), remedy=f"Keep the offsets from 0 to {room - 1}.")
        self.offsets = found

    def lined_up(self) -> Array:
        if self.offsets is None:
            wrong_call(self, "a view with tensor indirection is an operand of instructions only")
        return self.offsets

    def _table(self, group: int) -> tuple[Array, Array]:
        """Return the part of the index that holds offsets, and which of its elements do."""
        (partitions, count), index = self.shape, self.index
        turns = -(-count // group)
        if turns > index.shape[1] or min(group, count) > partitions:
            most = min(group, partitions) * (index.shape[1] if partitions >= group else 1)
            message = (
                f"{count} offsets are used of {describe(index)}; offset i is index[i % {group}, i // {group}] here, so "
                f"that it has {most}"
            )
            remedy = f"Pass num_elem={most} or less, or an index with more columns."
            refuse("NK402", message, about=(index,), remedy=remedy)
        position = np.arange(partitions)[:, None] % group + np.arange(turns) * group
        used = position < count
        missing = index.unwritten()
        if missing is not None and (missing[:, :turns] & used).any():
            refuse("NK401", f"tensor indirection reads {describe(index)}, which is partly unwritten", about=(index,))
        return index.read()[:, :turns], used

    def _check_groups(self, table: Array, used: Array, group: int) -> None:
        """NK607: the reference gives the offsets of one group and does not say whether others have their own."""
        partitions = self.shape[0]
        same = table == table[np.arange(partitions) % group]
        if not (same | ~used).all():
            row = int(np.argmax(~(same | ~used).all(axis=1)))
            not_modelled(
                f"tensor indirection with other offsets in row {row} of {describe(self.index)} than in row "
                f"{row % group} is not modelled: the reference does not say which of them partition {row} takes",
                remedy=f"Repeat the offsets of the first {group} rows in each further group of {group} rows.",
            )

    def read(self) -> Array:
        """Return the chosen columns, gathered."""
        return np.take(self.columns.array, self.lined_up(), axis=1)  # in C order, as a plain tile is

    def write(self, values: Array, lanes: Array | None = None) -> None:
        """Scatter ``values`` into the chosen columns, or only the values in ``lanes``."""
        offsets = self.lined_up()
        if lanes is None:
            self.columns.array[:, offsets] = values
        else:
            row, column = np.nonzero(np.broadcast_to(lanes, self.shape))
            self.columns.array[row, offsets[column]] = values[row, column]

    def mark_written(self, lanes: Array | None = None) -> None:
        """Remember that the chosen columns (``lanes``: only those elements) were written."""
        offsets = self.lined_up()
        where = np.zeros(self.columns.shape, np.bool_)
        row, column = np.nonzero(np.ones(self.shape, np.bool_) if lanes is None else np.broadcast_to(lanes, self.shape))
        where[row, offsets[column]] = True
        self.storage.mark_written(self.columns.layout, self.columns.byte_offset, where)

    def unwritten(self) -> Array | None:
        """Return a mask of the chosen elements that were never written, or None."""
        missing = self.columns.unwritten()
        if missing is None:
            return None
        chosen = np.asarray(missing[:, self.lined_up()])
        return chosen if chosen.any() else None

    def where_it_reads(self, mask: Array) -> tuple[NkiTensor, Array]:
        """Return the columns to choose from, with a mask over them."""
        where: Array = np.zeros(self.columns.shape, np.bool_)
        for column, missing in zip(self.lined_up(), mask.T, strict=True):
            where[:, column] |= missing
        return self.columns, where

    def __repr__(self) -> str:
        from nkitools.chip.tensor_repr import named

        return f"<{named(self)}: columns of {named(self.columns)} at offsets of {named(self.index)}>"


def _checked_count(tensor: NkiTensor, index: NkiTensor, num_elem: int | None) -> int:
    """Check the tensor and the index, and return the number of offsets."""
    if not isinstance(index, NkiTensor):
        wrong_call(tensor, f"indirect's index must be a tensor in SBUF, it is {type(index).__name__}")
    if not tensor.on_chip:
        refuse("NK201", f"indirect addresses tensors in SBUF or PSUM, not {describe(tensor)}", about=(tensor,))
    if tensor.is_indirect():
        wrong_call(tensor, "a view takes one dynamic index only; this one has its own already")
    if index.buffer is not MemoryRegion.sbuf:
        refuse("NK201", f"indirect's index must lie in SBUF, it is {describe(index)}", about=(index,))
    check_index(index, "indirect's index")
    if index.ndim != 2 or index.shape[0] != tensor.shape[0]:
        wrong(tensor, f"indirect's index must be ({tensor.shape[0]}, K), it is {describe(index)}")
    if not tensor.is_contiguous():
        not_modelled(
            f"indirect of {describe(tensor)} is not modelled: the reference does not say what an offset counts where "
            "the elements of a partition do not lie one behind the other"
        )
    count = index.size if num_elem is None else integer(tensor, num_elem, "indirect's num_elem")
    if not 1 <= count <= index.size:
        wrong(tensor, f"indirect's num_elem={count} is not in 1..{index.size}, the elements of {describe(index)}")
    return count


RUNTIME_VIEWS.columns = ColumnTensor.of
