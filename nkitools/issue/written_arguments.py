"""Writes into arguments that stay as they are for the caller: copied before, see `nkitools.launch.kept_arguments`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from nkitools.chip.runtime_views import VectorTensor
from nkitools.chip.tensor import NkiTensor


def open_views(*tensors: NkiTensor) -> None:
    """Let views of an argument be written; views that were made before are read-only until then."""
    for tensor in tensors:
        if tensor.storage.guard is not None:
            tensor.storage.guard(tensor.storage)
            view = tensor.rows if isinstance(tensor, VectorTensor) else tensor
            if not view.array.flags.writeable:
                view.array.flags.writeable = True


def is_kept(values: Iterable[Any], error: ValueError) -> bool:
    """Return whether an error of NumPy is about a write into an argument that is kept."""
    return "read-only" in str(error) and any(
        isinstance(value, NkiTensor) and value.storage.guard is not None for value in values
    )
