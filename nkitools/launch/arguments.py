"""Arguments in, results out: NumPy, torch and jax arrays become HBM tensors and come back in kind."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from nkitools.chip.dtypes import DType, UnknownDType, as_dtype
from nkitools.chip.memory import MemoryRegion, Storage
from nkitools.chip.numerics import Array
from nkitools.chip.tensor import NkiTensor
from nkitools.rules.finding import refuse

Wrap = Callable[[NkiTensor], Any]


def _is_torch(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _is_jax(value: Any) -> bool:
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, jax.Array)


def _torch_to_numpy(name: str, value: Any) -> Array:
    """A NumPy view of a CPU torch tensor's memory (bfloat16 and float8 through their bits)."""
    import torch

    if value.device.type != "cpu":
        refuse(
            "NK609",
            f"argument `{name}` is a torch tensor on device {value.device}; the simulator works in the host's memory",
            remedy=f"Pass {name}.cpu().",
        )
    value = value.detach()
    name_of_dtype = str(value.dtype).removeprefix("torch.")
    if name_of_dtype in ("bfloat16", "float8_e5m2", "float8_e4m3fn"):
        bits = value.view(torch.int16 if value.element_size() == 2 else torch.uint8)
        return np.asarray(bits.numpy()).view(as_dtype(name_of_dtype).dtype)
    return np.asarray(value.numpy())


def _torch_from_numpy(array: Array, dtype: DType) -> Any:
    import torch

    target = getattr(torch, dtype.name, None)
    if dtype.name in ("bfloat16", "float8_e5m2", "float8_e4m3fn"):
        return torch.from_numpy(array.view(f"u{array.itemsize}")).view(target)
    return torch.from_numpy(array)


class Arguments:
    """The arguments of one launch: what they were, and the tensors they became.

    A contiguous NumPy array or CPU torch tensor is used in place, so that what the kernel writes into it is there afterwards;
    others are copied in, and back where they can be written. One array passed twice becomes one storage.
    """

    def __init__(self, memory: MemoryRegion = MemoryRegion.private_hbm, wrap: Wrap | None = None) -> None:
        self.memory = memory
        self.wrap: Wrap = wrap or (lambda tensor: tensor)
        self.kind = "numpy"
        self._storages: list[tuple[Any, Array, Storage]] = []

    @property
    def storages(self) -> list[Storage]:
        """The storages that the array arguments became."""
        return [storage for _, _, storage in self._storages]

    def enter(self, name: str, value: Any) -> Any:
        """``value`` as the kernel sees it; arrays also inside lists, tuples and dictionaries."""
        if isinstance(value, np.ndarray):
            return self._tensor(name, value, value)
        if _is_torch(value):
            self.kind = "torch"
            return self._tensor(name, value, _torch_to_numpy(name, value))
        if _is_jax(value):
            self.kind = "jax"
            return self._tensor(name, value, np.asarray(value))
        if type(value) in (list, tuple):
            return type(value)(self.enter(f"{name}[{index}]", item) for index, item in enumerate(value))
        if type(value) is dict:
            return {key: self.enter(f"{name}[{key!r}]", item) for key, item in value.items()}
        return value

    def _tensor(self, name: str, original: Any, array: Array) -> Any:
        for known, _, storage in self._storages:
            if known is original:
                return self.wrap(NkiTensor.whole(storage))
        try:
            dtype = as_dtype(array.dtype)
        except UnknownDType:
            refuse(
                "NK301",
                f"argument `{name}` is an array of {array.dtype}, which NKI does not have",
                remedy=f"Convert it first: {name}.astype(np.float32), or another dtype of nki.language.",
            )
        if array.ndim == 0:
            refuse("NK609", f"argument `{name}` is an array without dimensions", remedy=f"Pass {name}.reshape(1) or a number.")
        usable = array.flags.c_contiguous and array.flags.aligned
        storage = Storage(
            array.shape, dtype, self.memory, array=array if usable else np.ascontiguousarray(array), name=name
        )
        storage.origin = original
        self._storages.append((original, array, storage))
        return self.wrap(NkiTensor.whole(storage))

    def finish(self) -> None:
        """Bring what was written into copied arguments back to the arrays themselves."""
        for _, array, storage in self._storages:
            if storage.array is not array and array.flags.writeable:
                np.copyto(array, storage.array)

    def leave(self, value: Any) -> Any:
        """A kernel's result in kind: tensors as arrays (an argument's own array where it is that), containers kept."""
        tensor = getattr(value, "tensor", value)
        if isinstance(tensor, NkiTensor):
            return self._array(tensor)
        if isinstance(value, (list, tuple)):
            return type(value)(self.leave(item) for item in value)
        if isinstance(value, dict):
            return {key: self.leave(item) for key, item in value.items()}
        return value

    def _array(self, tensor: NkiTensor) -> Any:
        storage = tensor.storage
        if storage.origin is not None and tensor.array is storage.array:
            return storage.origin
        array = tensor.read()
        if array.base is not None and array is not storage.array:
            array = np.ascontiguousarray(array)
        if self.kind == "torch":
            return _torch_from_numpy(array, tensor.dtype)
        if self.kind == "jax":
            import jax.numpy as jnp

            return jnp.asarray(array)
        return array
