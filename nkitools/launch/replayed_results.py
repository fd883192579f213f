"""The results of a recorded run, without their values, and those of a replay in their places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nkitools.chip.memory import Storage
from nkitools.chip.memory_region import MemoryRegion
from nkitools.chip.numerics import Array
from nkitools.chip.tensor import NkiTensor
from nkitools.launch.nested_arguments import mapped
from nkitools.replay.kept_lists import Recorded
from nkitools.replay.recording import Recording


@dataclass(frozen=True)
class Place:
    """The place of a result: in an argument, or in a storage of the results; ``offset`` and ``strides`` in bytes."""

    argument: int
    result: int
    shape: tuple[int, ...]
    dtype: Any
    memory: MemoryRegion
    is_whole: bool
    offset: int
    strides: tuple[int, ...]
    storage_shape: tuple[int, ...]
    storage_dtype: Any

    def on(self, storage: Storage) -> NkiTensor:
        """Return the result, which lies in this storage."""
        whole = NkiTensor.whole(storage)
        if self.is_whole:
            return whole
        window = storage.window(self.shape, self.dtype, self.offset, self.strides)
        return whole._view(window, self.offset, self.dtype)


def place_of(tensor: NkiTensor, inputs: dict[int, int], results: dict[int, Storage], recording: Recording) -> Place:
    """Return the place of a tensor, among the arguments by their ids, or in a storage that is added to the results."""
    storage = tensor.storage
    argument = inputs.get(storage.id, -1)
    number = -1
    if argument < 0:
        root = recording.roots.get(storage.id)
        if root is None or root.constant is not None or storage.physical is not None:
            recording.refuse("it returns a constant, or a tensor that has an address")
        else:
            results.setdefault(storage.id, storage)
            number = root.result = list(results).index(storage.id)
    whole = tensor.shape == storage.shape and tensor.dtype is storage.dtype and tensor.array is storage.array
    return Place(
        argument, number, tensor.shape, tensor.dtype, storage.memory, whole, tensor.byte_offset, tensor.array.strides,
        storage.shape, storage.dtype,
    )  # fmt: skip


def array_of(value: Any, inputs: Sequence[Array], results: Sequence[Array]) -> Any:
    """Return the array in the place of a whole result; other values as they are."""
    if not isinstance(value, Place):
        return value
    return inputs[value.argument] if value.argument >= 0 else results[value.result]


def result_of(recorded: Recorded, storages: list[Storage], results: list[Array]) -> list[Any]:
    """Return what the kernel would return on each rank, on the storages of this run."""
    made: dict[int, Storage] = {}

    def tensor(value: Any) -> Any:
        if not isinstance(value, Place):
            return value
        if value.argument >= 0:
            return value.on(storages[value.argument])
        if value.result not in made:
            array = results[value.result]
            made[value.result] = Storage(value.storage_shape, value.storage_dtype, value.memory, array=array)
        return value.on(made[value.result])

    return [mapped(each, tensor) for each in recorded.places]
