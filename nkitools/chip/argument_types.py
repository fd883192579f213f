"""The types of arguments that kernels pass to tensors and functions, for signatures that an editor can use.

Those that name a dtype, an index or a tensor stand in `nkitools.chip.dtypes`, `nkitools.chip.indexing` and
`nkitools.chip.tensor`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from nkitools.chip.memory_region import MemoryRegion
from nkitools.chip.registers import VirtualRegister

Shape: TypeAlias = int | Sequence[int]  # one size is a shape of one dimension
Axes: TypeAlias = int | Sequence[int]  # one dimension, or several
Pattern: TypeAlias = Sequence[Sequence[int]]  # [stride, count] of each dimension
Memory: TypeAlias = MemoryRegion | str  # nl.sbuf; in the legacy dialect also "sbuf"
Number: TypeAlias = int | float | np.integer[Any] | np.floating[Any]
Bound: TypeAlias = int | VirtualRegister  # of a loop on the device
