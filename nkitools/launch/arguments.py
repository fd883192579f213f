"""Arguments in, results out: NumPy, torch and jax arrays become HBM tensors and come back in kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

import nkitools.chip.column_gather  # noqa: F401  tensors of arguments ask for views that an index gives
from nkitools.chip.argument_types import Argument, FrameworkArray
from nkitools.chip.dtypes import DType, UnknownDType, as_dtype, float32
from nkitools.chip.memory import Storage
from nkitools.chip.numerics import Array
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.twin_storage import WIDE, is_widened
from nkitools.facts.light_classes import dataclass
from nkitools.facts.versions import LanguageVersion, by_full_name
from nkitools.launch.frameworks import NUMPY, Framework, framework_of, from_jax_dtype
from nkitools.launch.kept_arguments import Guard, Keeping, unlike_bits
from nkitools.launch.nested_arguments import Objects, mapped, mapped_by_name
from nkitools.launch.prepared import Prepared
from nkitools.record.tensor_names import tensor_of
from nkitools.rules.finding import refuse


@dataclass(eq=False, slots=True)
class _Entered:
    """An array argument: the caller's object, its memory as NumPy sees it, and the storage that it became."""

    original: Any
    array: Array
    storage: Storage
    may_change: bool = False  # whether the kernel may change the caller's array
    guard: Guard | None = None

    @property
    def is_changed(self) -> bool:
        """Return whether the kernel wrote into a copy (bits are compared, as not-a-number is unequal to itself)."""
        ours = self.storage.array
        return ours.flags.writeable and not self.is_in_place and self.array.tobytes() != ours.tobytes()

    @property
    def is_in_place(self) -> bool:
        """Return whether the storage is the array's own memory."""
        return self.storage.array is self.array or _address(self.storage.array) == _address(self.array)

    def is_same(self, original: Any, array: Array) -> bool:
        """Return whether another argument is the same object, or a view of exactly the same elements."""
        if original is self.original:
            return True
        mine, other = self.array, array
        return (mine.dtype, mine.shape, mine.strides) == (other.dtype, other.shape, other.strides) and (
            _address(mine) == _address(other)
        )


class Arguments:
    """The arguments of one launch: the author's values, and their tensors.

    A contiguous NumPy array or CPU torch tensor is used in place, so that it has the kernel's writes afterwards; others
    are copied in, and copied back if the kernel changed them. One array passed twice becomes one storage. A kernel
    cannot write into a read-only array, nor into jax's. ``widens_results``: results of low-precision dtypes are float32
    arrays, as in full precision; values written into an argument are rounded to its dtype. ``is_shared``: whether an
    array is also an argument of another rank, so that no rank may write into it. Before NKI 0.7 a kernel gets copies of
    the author's objects; since then it changes the author's own.
    """

    def __init__(self, prepared: Prepared, is_shared: Callable[[Array], bool] | None = None) -> None:
        launch = prepared.launch
        self.memory = prepared.memory
        self.language = prepared.settings.language
        self.is_shared = is_shared
        self.widens_results = prepared.full_precision and not launch.results_as_declared
        self.wrap = launch.wrap
        self.framework: Framework = NUMPY
        self.keeping = launch.keeping
        self.objects: Objects | None = None  # unless there are others than arrays
        self.storages: list[Storage] = []  # that the array arguments became
        self._entered: list[_Entered] = []

    def enter(self, name: str, value: Argument) -> Any:
        """``value`` as the kernel sees it; arrays also inside lists, tuples, dictionaries and dataclasses."""
        if type(value) is np.ndarray:
            return self._tensor(name, value, value, NUMPY)
        if self.objects is None:
            self.objects = Objects(self.language.copies_objects)
        return mapped_by_name(name, value, self._part, self.objects)

    def _part(self, name: str, value: Argument) -> Any:
        if tensor_of(value) is not None:
            message = f"argument `{name}` is a tensor of another run, which has ended"
            refuse("NK609", message, remedy="Pass arrays: what a kernel returns is in the outputs of its run.")
        framework = framework_of(value)
        if framework is None:
            return from_jax_dtype(name, value)
        if self.framework is NUMPY:
            self.framework = framework
        array = cast("FrameworkArray", value)
        return self._tensor(name, array, framework.to_numpy(name, array), framework)

    def _tensor(self, name: str, original: FrameworkArray, array: Array, framework: Framework) -> Any:
        """Return the tensor of an array argument; ``array``: as NumPy sees it."""
        keeping = self.keeping
        may_change = keeping is None or not keeping.restores or keeping.may_change(name)
        for entered in self._entered:
            if entered.is_same(original, array):
                if may_change and entered.guard is not None:  # given under a second name
                    entered.may_change, entered.guard = True, entered.guard.give_up(entered.storage)
                break
        else:
            storage = self._storage(name, array, _dtype_of(name, array, framework, self.language))
            storage.origin = original
            entered = _Entered(original, array, storage, may_change)
            if not may_change and entered.is_in_place and storage.array.flags.writeable:
                entered.guard = Guard(storage)
            self._entered.append(entered)
            self.storages.append(storage)
        tensor = NkiTensor.whole(entered.storage)
        return tensor if self.wrap is None else self.wrap(tensor)

    def _storage(self, name: str, array: Array, dtype: DType) -> Storage:
        if array.ndim == 0:
            message = f"argument `{name}` is an array without dimensions"
            remedy = f"Pass {name}.reshape(1), or {name}.item() for a number known when the kernel is compiled."
            refuse("NK609", message, remedy=remedy)
        if array.size == 0:
            refuse("NK609", f"argument `{name}` has shape {list(array.shape)}; every size must be at least 1")
        flags = array.flags
        memory = array
        if not (flags.c_contiguous and flags.aligned):
            memory = np.array(array, order="C")
        elif 1 in array.shape:
            memory = _in_place(array)
        # Elements that share their memory have no value of their own: np.broadcast_to, torch's expand.
        shared = 0 in array.strides and any(
            stride == 0 and size > 1 for stride, size in zip(array.strides, array.shape, strict=True)
        )
        if self.is_shared is not None and self.is_shared(array):
            memory = memory.view()  # the caller's array stays as it is
            shared = True
        if shared or not flags.writeable:
            memory.flags.writeable = False
        return Storage(array.shape, dtype, self.memory, array=memory, name=name)

    def read_only(self, memory: Array) -> str:
        """Return the name of the argument that ``memory`` is part of and that may not be written, or ''."""
        for entered in self._entered:
            array = entered.storage.array
            if not array.flags.writeable and np.may_share_memory(array, memory):
                return entered.storage.name
        return ""

    def is_given_to_others(self, name: str) -> bool:
        """Return whether the argument ``name`` is also one of another rank."""
        is_shared = self.is_shared
        return is_shared is not None and any(
            each.storage.name == name and is_shared(each.array) for each in self._entered
        )

    def finish(self) -> None:
        """Copy writes to copied arguments back to the arrays, unless these keep their values.

        Only changed arguments are copied: another copied argument may be a view of the same elements.
        """
        self.finish_objects()
        changed = [each for each in self._entered if each.may_change and each.is_changed]
        for entered in changed:
            np.copyto(entered.array, entered.storage.array)

    @property
    def kept(self) -> list[int]:
        """The storages of the arguments that the kernel is not to change, and may have written into."""
        found: list[int] = []
        keeping = self.keeping
        if keeping is None:
            return found
        for each in self._entered:
            if (each.guard is None or each.guard.is_open) and not self._is_named(each, keeping):
                found.append(each.storage.id)
        return found

    @staticmethod
    def _is_named(entered: _Entered, keeping: Keeping) -> bool:
        return keeping.may_change(entered.storage.name) or (keeping.restores and entered.may_change)

    def restore(self) -> None:
        """Restore arguments that keep their values, the last one first: a later copy may contain earlier ones."""
        for each in reversed(self._entered):
            if each.guard is not None:
                each.guard.restore(each.storage)

    def changed_elements(self, storage: int) -> Array:
        """Return for each element of an argument whether it holds other bits than before; if not known, true."""
        found = next(each for each in self._entered if each.storage.id == storage)
        if found.guard is not None:
            return found.guard.changed_elements()
        ours = found.storage.array
        return np.ones(ours.size, np.bool_) if found.is_in_place else unlike_bits(found.array, ours)

    def finish_objects(self) -> None:
        """Set the attributes that the kernel changed on the author's objects, also if it raises, as Python does."""
        if self.objects is not None:
            self.objects.write_back(self.leave)

    def leave(self, value: Argument) -> Any:
        """Return a kernel's result in kind: tensors as arrays (an argument as its own array), containers kept."""
        tensor = tensor_of(value)
        return mapped(value, self._leave_part) if tensor is None else self._array(tensor)

    def _leave_part(self, value: Argument) -> Any:
        tensor = tensor_of(value)
        return value if tensor is None else self._array(tensor)

    def _array(self, tensor: NkiTensor) -> Any:
        storage = tensor.storage
        if self.widens_results and is_widened(tensor.dtype):
            from nkitools.chip.full_precision_shadow import digits_of  # for runs in full precision

            return self.framework.from_numpy(np.array(digits_of(tensor), WIDE.get().dtype, order="C"), float32)
        if storage.origin is None:
            return self.framework.from_numpy(np.ascontiguousarray(tensor.read()), tensor.dtype)
        if tensor.array is storage.array and not self._is_written(storage):
            return storage.origin
        # A part of an argument is a copy, so that a write through the result leaves the argument alone.
        return self.framework.from_numpy(np.array(tensor.read(), order="C"), tensor.dtype)

    def _is_written(self, storage: Storage) -> bool:
        """Return whether a storage is a kept argument that an instruction has written into."""
        return any(
            each.guard.is_open if each.guard is not None else each.is_changed and not each.may_change
            for each in self._entered
            if each.storage is storage
        )


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _dtype_of(name: str, array: Array, framework: Framework, language: LanguageVersion) -> DType:
    try:
        found = as_dtype(array.dtype)
        if not found.is_wide or by_full_name()[f"nki.language.{found}"].is_in(language):
            return found
    except UnknownDType:
        pass
    wanted = ("int32", "float32") if array.dtype.kind in "iu" else ("float32",)
    casts = ", ".join(framework.cast.format(name=name, dtype=dtype) for dtype in wanted)
    message = f"argument `{name}` is an array of {array.dtype}, which NKI does not have"
    return refuse("NK301", message, remedy=f"Convert it first: {casts}, or another dtype of nki.language.")


def _in_place(array: Array) -> Array:
    """Return a contiguous array with the strides of its shape: dimensions of size 1 may have any in NumPy."""
    plain = array.reshape(-1).reshape(array.shape)
    return array if plain.strides == array.strides else plain
