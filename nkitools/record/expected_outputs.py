"""The outputs that a kernel should have computed, kept beside the run for reports of the difference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nkitools.chip.argument_types import Argument


@dataclass(frozen=True, eq=False)
class Reference:
    """The expected outputs, in the same containers, and their allowed difference.

    An element agrees that is within ``atol + rtol * abs(expected)``, as in NumPy and torch. None: by the dtype of the
    output, as in torch.testing.assert_close.
    """

    values: Argument
    rtol: float | None = None
    atol: float | None = None
