"""An operator's arguments on their way in, and its result on the way out."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from nkitools.chip.argument_types import FrameworkArray, Number
from nkitools.chip.dtypes import as_dtype
from nkitools.chip.numerics import Array
from nkitools.customop.abi import (
    CALL_BYTES,
    MAX_ARGUMENTS,
    MAX_DIMS,
    SCALAR_DOUBLE,
    SCALAR_INTEGER,
    SCALAR_TYPES,
    TENSOR,
    Call,
    aligned,
)
from nkitools.rules.finding import refuse

_CODES = {name: code for code, (name, _) in SCALAR_TYPES.items()}
_KNOWN = ", ".join(_CODES)
_WORDS = {"t": "a Tensor", "s": "a Scalar", "d": "a double", "i": "an int64_t", "f": "a float", "n": "a number"}
_LONG_DIMS, _LONG_LIMIT = 4, 4294967295  # up to 4 dimensions of that size, or 8 of the other one (Library Limitations)
_SHORT_LIMIT = 65535


Passed: TypeAlias = FrameworkArray | Number  # an array of NumPy or torch for a Tensor, a number for a scalar


@dataclass(frozen=True)
class Arguments:
    """The arguments of a call: its arrays in NumPy's form and its numbers, in the order of the parameters."""

    values: tuple[Any, ...]
    torch: bool

    def size(self) -> int:
        """Return the bytes of a call with these arguments, without the output."""
        end = aligned(CALL_BYTES)
        for value in self.values:
            if isinstance(value, np.ndarray):
                end = aligned(end + value.nbytes + 1)
        return end

    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of the arrays."""
        return tuple(value.shape for value in self.values if isinstance(value, np.ndarray))

    def write(self, call: Call, memory: mmap.mmap) -> None:
        """Lay the arguments out behind the call."""
        end = aligned(CALL_BYTES)
        call.arguments = len(self.values)
        for slot, value in zip(call.args, self.values, strict=False):
            if isinstance(value, np.ndarray):
                slot.kind = TENSOR
                record = slot.tensor
                record.offset, record.numel, record.dim = end, value.size, value.ndim
                record.dtype = _CODES[str(value.dtype)]
                record.sizes[: value.ndim] = value.shape
                array_at(memory, end, value.dtype, value.shape)[...] = value
                end = aligned(end + value.nbytes + 1)
            elif isinstance(value, int):
                slot.kind, slot.integer = SCALAR_INTEGER, value
            else:
                slot.kind, slot.number = SCALAR_DOUBLE, value
        call.end = end


def array_at(memory: mmap.mmap, offset: int, dtype: np.dtype[Any] | type, shape: tuple[int, ...]) -> Array:
    """Return an array over a part of the call's memory."""
    count = int(np.prod(shape, dtype=np.int64))
    return np.frombuffer(memory, dtype, count, offset).reshape(shape)


def numpy_dtype(code: int) -> Any:
    """Return the NumPy dtype for the code of a tensor type."""
    return as_dtype(SCALAR_TYPES[code][0]).dtype


def take(operator: str, signature: str, values: Sequence[Any], names: Sequence[str] = ()) -> Arguments:
    """Judge a call's arguments against the kernel's parameters (``signature``: letters, the result's first;
    ``names``: what it calls them).

    CO112 for a wrong number or kind, and for arrays that are not contiguous; CO110 for a dtype that tensors do not
    have; CO111 for sizes beyond the limits.
    """
    wanted = signature[1:]
    if len(values) != len(wanted):
        plural = "" if len(wanted) == 1 else "s"
        message = f"operator `{operator}` takes {len(wanted)} argument{plural}, it is given {len(values)}"
        remedy = "Pass one value for each parameter of the kernel: arrays for tensors, numbers for scalars."
        refuse("CO112", message, remedy=remedy)
    if len(values) > MAX_ARGUMENTS:
        refuse("NK607", f"operator `{operator}` has {len(values)} parameters; nkitools runs up to {MAX_ARGUMENTS}")
    pairs = enumerate(zip(wanted, values, strict=True))
    taken = tuple(
        _taken(f"{argument_name(index, names)} of operator `{operator}`", letter, value)
        for index, (letter, value) in pairs
    )
    return Arguments(taken, any(_is_torch(value) for value in values))


def _is_torch(value: Passed) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def argument_name(index: int, names: Sequence[str]) -> str:
    """Return the words for an argument in a sentence: ``argument 0 `preds```."""
    return f"argument {index} `{names[index]}`" if names else f"argument {index}"


def _taken(where: str, letter: str, value: Passed) -> Any:
    if letter == "t":
        return _tensor(where, value)
    if isinstance(value, bool | int | float | np.number):
        return int(value) if isinstance(value, bool | int | np.integer) else float(value)
    message = (
        f"{where} is {type(value).__name__}; the kernel takes {_WORDS.get(letter, 'a type that cannot be passed')}"
    )
    return refuse("CO112", message, remedy="Pass a Python number.")


def _tensor(where: str, value: Passed) -> Array:
    array = _numpy_of(where, value)
    if str(array.dtype) not in _CODES:
        message = f"{where} is {array.dtype}; tensors of custom operators are {_KNOWN}"
        refuse("CO110", message, remedy="Convert it before the call: x.astype(np.float32), or x.to(torch.float32).")
    if not array.flags.c_contiguous:
        message = (
            f"{where} is not contiguous (strides {array.strides} of shape {array.shape}); an operator sees "
            f"its elements "
            "in row-major order, one after the other"
        )
        refuse("CO112", message, remedy="Pass np.ascontiguousarray(x), or x.contiguous() of torch.")
    judge_shape(where, array.shape)
    return array


def _numpy_of(where: str, value: Passed) -> Array:
    if isinstance(value, np.ndarray) and not isinstance(value, np.ma.MaskedArray):
        return value
    if _is_torch(value):
        return _of_torch(where, value)
    message = f"{where} is {type(value).__name__}; the kernel takes a Tensor there"
    return refuse("CO112", message, remedy="Pass a NumPy array or a torch tensor.")


def _of_torch(where: str, value: Any) -> Array:
    import torch

    if value.device.type != "cpu" or value.layout is not torch.strided:
        message = (
            f"{where} is a torch tensor on {value.device} ({value.layout}); the simulator takes dense ones in the "
            "host's memory"
        )
        refuse("CO112", message, remedy="Pass x.cpu(), or x.to_dense().")
    value = value.detach()
    if value.dtype is torch.bfloat16:
        return np.asarray(value.view(torch.int16).numpy()).view(as_dtype("bfloat16").dtype)
    try:
        return np.asarray(value.numpy())
    except TypeError:
        return refuse("CO110", f"{where} is {value.dtype}; tensors of custom operators are {_KNOWN}")


def judge_shape(where: str, shape: tuple[int, ...]) -> None:
    """CO111 for a shape beyond the limits of tensors that are passed in or returned."""
    problem = shape_problem(shape)
    if problem:
        refuse("CO111", f"{where} has shape {list(shape)}: {problem}")


def shape_problem(shape: tuple[int, ...]) -> str:
    """Return a clause on what is wrong with a shape; '' if nothing is."""
    if len(shape) > MAX_DIMS:
        return f"{len(shape)} dimensions; {MAX_DIMS} are the most"
    if 0 in shape:
        return f"dimension {shape.index(0)} is empty, so that there is nothing to compute"
    if max(shape, default=1) > _LONG_LIMIT:
        return f"a dimension has more than {_LONG_LIMIT} elements"
    if len(shape) > _LONG_DIMS and max(shape) > _SHORT_LIMIT:
        return f"with more than {_LONG_DIMS} dimensions none may have more than {_SHORT_LIMIT} elements"
    return ""


def give_back(array: Array, as_torch: bool) -> Any:
    """Return the result in the form of the arguments."""
    if not as_torch:
        return array
    import torch

    if array.dtype == as_dtype("bfloat16").dtype:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)
