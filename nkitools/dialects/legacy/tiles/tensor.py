"""The tensor of the legacy dialect (``nki.tensor``): a view with operators, advanced indexing and assignment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeAlias

import numpy as np

from nkitools.chip.argument_types import Shape
from nkitools.chip.core import CORE
from nkitools.chip.dtypes import DType, DTypeLike
from nkitools.chip.masked_out import leave_out
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.tensor_repr import named
from nkitools.chip.view_checks import describe
from nkitools.dialects.absent import NotModelledAttribute
from nkitools.dialects.legacy.indexing.access import Access, access_of, known_view
from nkitools.dialects.legacy.indexing.divided import DividedAccess, divided_access
from nkitools.dialects.legacy.indexing.indices import Divided, Index, NonAffine
from nkitools.dialects.legacy.indexing.masks import NO_MASK, Box, Lanes, Mask, Subscript, not_affine
from nkitools.dialects.legacy.indexing.runtime_indices import DynamicIndex, OffsetAccess, RowAccess, chosen_access
from nkitools.dialects.legacy.indexing.slicing import basic_view, element_view
from nkitools.dialects.legacy.kernels.kernel_state import TENSOR_MADE
from nkitools.dialects.legacy.tiles import elementwise, reshaping
from nkitools.dialects.legacy.tiles.assignment import assign, update
from nkitools.dialects.legacy.tiles.dtypes import element_type, shown
from nkitools.dialects.legacy.tiles.python_forms import PythonForms
from nkitools.dialects.legacy.tiles.result_tiles import part
from nkitools.language.broadcast import broadcast
from nkitools.record.open_instruction import OpenInstruction
from nkitools.rules.catalogue import RULES
from nkitools.rules.finding import finding_here, not_modelled, refuse

if TYPE_CHECKING:
    import numpy.typing as npt


def _operator(what: str, *, reverse: bool = False) -> Callable[[Any, Any], Any]:
    """Return the method of an operator."""

    def operate(self: Tensor, other: Operand, modulus: Operand | None = None) -> Any:
        if modulus is not None:  # of pow
            self.__mod__(modulus)
        return self._operate(what, other, reverse=reverse)

    return operate


def _updater(what: str) -> Callable[[Any, Any], Any]:
    """Return the method of an operator that works in place."""

    def updated(self: Tensor, other: Operand | Index | NonAffine | Mask) -> Tensor:
        if isinstance(other, (Index, NonAffine, Mask)):
            self._operate(what, other)
        update(what, self, other)
        return self

    return updated


class Tensor(PythonForms):
    """A tensor in HBM, or a tile in SBUF or PSUM whose first dimension is the partition dimension.

    The result of an index that reaches beyond the tensor, or that other tiles choose, has an ``access``, which
    describes its positions, in place of a view. Positions outside of the tensor are an error (NK402) only when it is
    used without a mask that excludes them. Of a tile that a call returned: ``lanes`` are the elements that the call
    wrote (None: all), ``opened`` its last instruction, ``skipped_at`` the position of the record if it is a load that
    skipped the whole tile (else -1).
    """

    __slots__ = ("access", "base", "element", "lanes", "opened", "shape", "skipped_at")
    dialect = "neuronxcc.nki"
    is_plain = True  # all of the tile is in `base`, unless it has an access
    __hash__ = object.__hash__

    def __init__(self, tensor: NkiTensor) -> None:
        self.base = tensor
        self.access: Access | RowAccess | OffsetAccess | DividedAccess | None = None
        self.element: DType = tensor.dtype
        self.shape: tuple[int, ...] = tensor.shape
        self.lanes: Lanes | None = None
        self.opened: OpenInstruction | None = None
        self.skipped_at = -1
        tell = TENSOR_MADE.get()
        if tell is not None:
            tell()

    @classmethod
    def beyond(cls, access: Access | RowAccess | OffsetAccess | DividedAccess) -> Tensor:
        """Return a tile with the positions that ``access`` describes; they become a view when the tile is used.

        They may lie outside of the tensor, for calls whose mask leaves those out, or be chosen by another tile.
        """
        result = Tensor(access.tensor)
        result.access = access
        result.shape = access.shape
        return result

    @classmethod
    def made(cls, tensor: NkiTensor, lanes: Lanes | None = None) -> Tensor:
        """Return ``tensor`` as the result of a call whose last instruction wrote its elements ``lanes`` (None: all)."""
        result = Tensor(tensor)
        result.lanes = lanes
        if lanes is not None:
            leave_out(tensor.storage, tensor.storage.site)
        core = CORE.get()
        if core is not None:
            result.opened = core.record.end_value(tensor.storage, is_masked=lanes is not None)
        return result

    @property
    def tensor(self) -> NkiTensor | None:
        """The view; None for a tile with an ``access``."""
        return self.base if self.access is None else None

    def resolved(self) -> NkiTensor:
        """Return the view that instructions work on. Errors: NK402 (positions outside of the tensor), NK603, NK612."""
        return self.base if self.access is None else self.access.view()

    def within(self, shape: tuple[int, ...], box: Box) -> NkiTensor:
        """Return the view of a box of this tile, which is an operand of a call on tiles of ``shape``.

        ``box``: first and end position in each dimension; dimensions of size 1 broadcast. Errors: NK402, NK603, NK604.
        """
        if self.access is None:
            return part(self.base, shape, box)
        if self.shape != shape:
            not_affine(f"it describes a tile {list(shape)}, an operand has the shape {list(self.shape)}")
        return self.access.view(box)

    def reaches(self, box: Box) -> bool:
        """Return True if all positions of a box of the tile lie within the tensor, else False."""
        return self.access is None or self.access.violation(box) is None

    @property
    def is_fresh(self) -> bool:
        """True while the last instruction of the run is the one that wrote this tile as the result of a call.

        An assignment of the tile then needs no copy: that instruction writes to the destination instead.
        """
        core = CORE.get()
        return core is not None and self.opened is not None and core.record.open is self.opened

    # --- attributes ------------------------------------------------------------------------------------------------

    @property
    def storage(self) -> Any:
        """The storage that holds the elements."""
        return self.base.storage

    @property
    def buffer(self) -> MemoryRegion:
        """Memory of the tensor: nl.sbuf, nl.psum, nl.private_hbm (the same as nl.hbm) or nl.shared_hbm."""
        return self.base.buffer

    @property
    def dtype(self) -> np.dtype[Any]:
        """Data type of the elements, a NumPy dtype."""
        return shown(self.element)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.element.itemsize

    # --- indexing --------------------------------------------------------------------------------------------------

    def __getitem__(self, key: Key) -> Tensor:
        base = self.base
        if key.__class__ is tuple and self.access is None and self.is_plain and base.__class__ is NkiTensor:
            view = element_view(base, key) if key and key[-1].__class__ is int else None
            view = known_view(base, key) if view is None else view
            if view is not None:
                return Tensor(view)
        if isinstance(key, (Mask, bool, np.bool_)):
            return MaskedOperand(self, NO_MASK & key)
        items = key if isinstance(key, tuple) else (key,)
        advanced = False
        for item in items:
            if isinstance(item, (Index, NonAffine)):
                advanced = True
            elif isinstance(item, (Tensor, DynamicIndex)):
                return Tensor.beyond(chosen_access(self.resolved(), items, _is_tile))
        if not advanced:
            found = basic_view(self.resolved(), tuple(items))
            return Tensor.beyond(found) if isinstance(found, Access) else Tensor(found)
        if any(isinstance(item, Divided) for item in items):
            return Tensor.beyond(divided_access(self.resolved(), items))
        access = access_of(self.resolved(), items)
        return Tensor(access.inside()) if access.violation() is None else Tensor.beyond(access)

    def __setitem__(self, key: Key, value: Operand) -> None:
        assign(self if key is Ellipsis and self.access is None else self[key], value)

    # --- shape and dtype -------------------------------------------------------------------------------------------

    def assert_shape(self, shape: Sequence[int]) -> Self:
        """Return the tensor itself; AssertionError if it has another shape."""
        expected = tuple(shape)
        assert self.shape == expected, f"expected a tensor of shape {list(expected)}, it is {describe(self.base)}"
        return self

    def astype(self, dtype: DTypeLike) -> Tensor:
        """Return a copy of a tile in SBUF or PSUM in another dtype, as a new SBUF tile.

        Errors: NK101, NK107, NK108, NK110, NK201, NK301, NK402, NK603, NK611, NK612.
        """
        return Tensor.made(reshaping.converted_value(self.resolved(), element_type(dtype)))

    def broadcast_to(self, shape: Shape) -> Tensor:
        """Return the tensor broadcast to ``shape`` by NumPy's rules.

        The result is a view, but a new SBUF tile if one partition becomes several. A tile keeps its number of
        dimensions (NK109). Errors: NK101, NK109, NK110, NK402, NK603, NK609, NK612.
        """
        return Tensor(broadcast(self.resolved(), shape))

    def expand_dims(self, axis: int | Sequence[int]) -> Tensor:
        """Return a view with a new dimension of size 1 at ``axis`` of the result, or several at several positions.

        NK109: a position that the result does not have, and position 0 of a tile. Errors: NK109, NK402, NK603, NK609,
        NK612.
        """
        return Tensor(reshaping.expanded(self.resolved(), axis))

    def reshape(self, shape: Shape, *more: int) -> Tensor:
        """Return a view of the same elements in another shape, a tuple or several integers.

        A tile keeps the size of its first dimension (NK109). Errors: NK109, NK402, NK603, NK609, NK612.
        """
        sizes: Any = (shape, *more) if more else shape
        return Tensor(reshaping.reshaped(self.resolved(), sizes))

    def view(self, dtype: DTypeLike) -> Tensor:
        """Return a view of the same bytes as another dtype; another width changes the size of the last dimension.

        Errors: NK109 (a last dimension that does not divide, or has gaps), NK301, NK402, NK603, NK609, NK612.
        """
        return Tensor(self.resolved().view(element_type(dtype)))

    # --- operators -------------------------------------------------------------------------------------------------

    def _operate(self, what: str, other: Any, *, reverse: bool = False) -> Any:
        if other.__class__ is not Tensor and isinstance(other, (Index, NonAffine, Mask, DynamicIndex)):
            if what in _COMPARISONS and isinstance(other, (Index, NonAffine)):
                not_affine(f"it compares an index with {describe(self.base)}")
            if isinstance(other, Index) and (what == "add" or (what == "subtract" and not reverse)):
                return DynamicIndex(self, other if what == "add" else -other)
            not_modelled(
                "arithmetic of a tile with an index other than its sum, a dynamic offset, is not modelled",
                remedy="Where a tile of the index's values is wanted, make it first: nisa.iota(index, dtype=nl.int32).",
            )
        if not isinstance(other, (Tensor, bool, int, float, np.generic)):
            is_none = other is None and what not in _COMPARISONS
            if is_none or isinstance(other, (np.ndarray, list, tuple, str, complex)):
                elementwise.not_a_tile(f"`{_OPERATORS[what]}`", "the other operand", other)
            return NotImplemented
        x, y = (other, self) if reverse else (self, other)
        dtype = bool if what in _COMPARISONS else None
        return Tensor.made(*elementwise.binary(what, x, y, dtype=dtype, partitions=False, name=_OPERATORS[what]))

    __add__, __radd__ = _operator("add"), _operator("add", reverse=True)
    __sub__, __rsub__ = _operator("subtract"), _operator("subtract", reverse=True)
    __mul__, __rmul__ = _operator("multiply"), _operator("multiply", reverse=True)
    __truediv__, __rtruediv__ = _operator("divide"), _operator("divide", reverse=True)
    __pow__, __rpow__ = _operator("power"), _operator("power", reverse=True)
    __and__, __rand__ = _operator("bitwise_and"), _operator("bitwise_and", reverse=True)
    __or__, __ror__ = _operator("bitwise_or"), _operator("bitwise_or", reverse=True)
    __xor__, __rxor__ = _operator("bitwise_xor"), _operator("bitwise_xor", reverse=True)
    __lshift__, __rshift__ = _operator("left_shift"), _operator("right_shift")
    __lt__, __le__ = _operator("less"), _operator("less_equal")
    __gt__, __ge__ = _operator("greater"), _operator("greater_equal")
    __eq__, __ne__ = _operator("equal"), _operator("not_equal")

    def __neg__(self) -> Tensor:
        return Tensor.made(*elementwise.unary("negative", self))

    def __invert__(self) -> Tensor:
        # "Use ~ instead of not" (err_ambiguous_tensor_truth_value), but the bits of a truth value do not invert so.
        if self.element.kind == "bool":
            return Tensor.made(*elementwise.unary("logical_not", self))
        return Tensor.made(*elementwise.unary("invert", self))

    def __abs__(self) -> Tensor:
        return Tensor.made(*elementwise.unary("abs", self))

    __iadd__, __isub__ = _updater("add"), _updater("subtract")
    __imul__, __itruediv__ = _updater("multiply"), _updater("divide")

    # --- what a tensor is not --------------------------------------------------------------------------------------

    def __bool__(self) -> NoReturn:
        scalar = all(size == 1 for size in self.shape)
        code = "err_dynamic_control_flow_not_supported" if scalar else "err_ambiguous_tensor_truth_value"
        refuse(
            "NK602",
            f"the truth value of {describe(self.base)} is asked for; its elements exist only on the chip ({code})",
            about=(self.base,),
        )

    def __iter__(self) -> NoReturn:
        refuse(
            "NK601", f"{describe(self.base)} cannot be iterated over", about=(self.base,), remedy="Index it in a loop."
        )

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> NoReturn:
        refuse(
            "NK601",
            f"NumPy cannot work on {describe(self.base)} inside a kernel; the chip would not run it",
            about=(self.base,),
        )

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(f"a tensor has no attribute {name!r}")
        from nkitools.facts.invented_names import attribute_remedy

        message = f"a tensor of neuronxcc.nki has no attribute `{name}` in AWS's documentation"
        remedy = attribute_remedy(name, legacy=True) or RULES["NK607"].remedy
        raise NotModelledAttribute(finding_here(RULES["NK607"], message, remedy))

    def __repr__(self) -> str:
        if self.access is not None:
            return f"<tile {list(self.shape)} of {named(self.base)}, partly outside of it or chosen when it is used>"
        return repr(self.base)


def _is_tile(item: Subscript) -> bool:
    """Return whether an item of an index tuple is known only when the kernel runs."""
    return isinstance(item, (Tensor, DynamicIndex))


_OPERATORS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "power": "**", "bitwise_and": "&", "bitwise_or": "|",
    "bitwise_xor": "^", "left_shift": "<<", "right_shift": ">>", "less": "<", "less_equal": "<=", "greater": ">",
    "greater_equal": ">=", "equal": "==", "not_equal": "!=",
}  # fmt: skip
_COMPARISONS = frozenset({"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"})


class MaskedOperand(Tensor):
    """``tile[mask]``: an operand of a matmul in which only the mask's lanes take part (NKI API, Masking)."""

    __slots__ = ("chosen", "mask")
    is_plain = False

    def __init__(self, tile: Tensor, mask: Mask) -> None:
        super().__init__(tile.base)
        self.mask = mask
        self.access, self.shape = tile.access, tile.shape
        self.chosen = mask.lanes(tile.shape, "operand mask")
        if self.chosen.where is not None:
            not_affine("an operand mask must leave a box of the tile")

    def __getitem__(self, key: Key) -> Tensor:
        """Return the operand under one mask more; a condition on loop counters alone is a bool."""
        if isinstance(key, (Mask, bool, np.bool_)):
            return MaskedOperand(self, self.mask & key)
        return Tensor(self.resolved())

    def resolved(self) -> NoReturn:
        """Refused: only matrix multiplications take operand masks."""
        not_affine(
            "tile[mask] is an operand mask, which only nl.matmul and nisa.nc_matmul take; pass mask= to other calls"
        )


# What computes with tiles and numbers takes.
Operand: TypeAlias = Tensor | float | np.generic
# What may stand in the brackets behind a tensor: a mask makes an operand of a matmul, a tile chooses what is addressed.
Key: TypeAlias = "Subscript | Index | NonAffine | Mask | bool | np.bool_ | Tensor | DynamicIndex"
