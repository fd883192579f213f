"""``nki.typing``: annotations of parameters and variables, and stand-ins for inputs whose values do not matter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nkitools.chip.dtypes import DTypeLike
from nkitools.dialects.absent import missing
from nkitools.dialects.legacy.indexing.masks import Subscript
from nkitools.dialects.legacy.tiles.dtypes import element_type
from nkitools.dialects.legacy.tiles.scalars import scalar


class FakeInput:
    """``nt.tensor[[250, 512], nl.float32]``: an input of that shape and dtype, of zeros, for runs that only measure."""

    def __init__(self, shape: Sequence[int], dtype: DTypeLike) -> None:
        self.shape = tuple(shape)
        self.dtype = element_type(dtype)

    def array(self) -> np.ndarray[Any, np.dtype[Any]]:
        """Return the zeros."""
        return np.zeros(self.shape, self.dtype.dtype)

    def __repr__(self) -> str:
        return f"nki.typing.tensor[{list(self.shape)}, {self.dtype}]"


class Annotation:
    """An annotation that may be subscripted with sizes and a dtype; it promises nothing to the simulator."""

    def __init__(self, name: str, sizes: tuple[Any, ...] = ()) -> None:
        self.name = name
        self.sizes = sizes

    def __getitem__(self, key: Subscript) -> Any:
        sizes = key if isinstance(key, tuple) else (key,)
        if self.name == "tensor" and len(sizes) == 2 and isinstance(sizes[0], (list, tuple)):
            return FakeInput(*sizes)
        return Annotation(self.name, sizes)

    def __repr__(self) -> str:
        return f"nki.typing.{self.name}{list(self.sizes) if self.sizes else ''}"


tensor = Annotation("tensor")
mutable_tensor = Annotation("mutable_tensor")

__all__ = ["mutable_tensor", "scalar", "tensor"]


def __getattr__(name: str) -> Any:
    return missing("neuronxcc.nki.typing", name, __all__)
