"""``nl.fp32`` and ``nl.bfp16``: the most negative numbers of the two formats."""

from __future__ import annotations

import numpy as np


class _Limits:
    """The smallest value of a floating-point format."""

    def __init__(self, name: str, smallest: float) -> None:
        self.name = name
        self.min = smallest

    def __repr__(self) -> str:
        return f"nl.{self.name}"


fp32 = _Limits("fp32", float(np.finfo(np.float32).min))
# The documentation gives the bit pattern 0xff80, which is minus infinity in bfloat16.
bfp16 = _Limits("bfp16", float("-inf"))
