"""What a kernel should have computed: kept beside the run, for whoever shows the difference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class Reference:
    """What the outputs should be, in the same containers, and how far they may be off.

    An element agrees that is within ``atol + rtol * abs(expected)``, as NumPy and torch say it. None: by the dtype of
    the output, as torch.testing.assert_close does.
    """

    values: Any
    rtol: float | None = None
    atol: float | None = None
