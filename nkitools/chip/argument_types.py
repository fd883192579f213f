"""The types of arguments that kernels pass to tensors and functions, for signatures that an editor can use.

Types for dtypes, indices and tensors are in `nkitools.chip.dtypes`, `nkitools.chip.indexing` and
`nkitools.chip.tensor`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

import numpy as np

from nkitools.chip.device_numbers import DeviceNumber
from nkitools.chip.memory_region import MemoryRegion

if TYPE_CHECKING:
    from nkitools.chip.dtypes import DType

Shape: TypeAlias = int | Sequence[int]  # one size is a shape of one dimension
Axes: TypeAlias = int | Sequence[int]  # one dimension, or several
Pattern: TypeAlias = Sequence[Sequence[int]]  # [stride, count] of each dimension
Memory: TypeAlias = MemoryRegion | str  # nl.sbuf; in the legacy dialect also "sbuf"
Number: TypeAlias = int | float | np.integer[Any] | np.floating[Any]
Bound: TypeAlias = int | DeviceNumber  # of a loop on the device
Grid: TypeAlias = int | Sequence[int]  # of a launch
Kernel: TypeAlias = Callable[..., Any]  # a function, or the object that a decorator makes of one


class FrameworkArray(Protocol):
    """An array of NumPy, torch or jax."""

    @property
    def shape(self) -> Any:
        """The sizes of its dimensions."""

    @property
    def dtype(self) -> Any:
        """The framework's own dtype."""


class Dataclass(Protocol):
    """An instance of a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


class SettingsObject(Protocol):
    """An instance of a class that derives from ``nl.NKIObject``."""

    @property
    def __nki_object__(self) -> bool: ...


# What kernels take and give: arrays, settings, and containers of them.
Setting: TypeAlias = "Number | bool | str | Enum | DType | type | Callable[..., Any] | None"
Container: TypeAlias = "Sequence[Argument] | Mapping[Any, Argument] | Dataclass | SettingsObject"
Argument: TypeAlias = "FrameworkArray | Setting | Container"
