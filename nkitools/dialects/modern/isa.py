"""``nki.isa``: the instructions, and the enums and constants that they take.

Every instruction can give these errors and warnings, beside those that its docstring lists: NK611 (a call outside of a
kernel), NK608 (a name or an argument of another NKI version), NK601, NK602 and NK621 (a tile, register or scalar where
a Python value is meant), NK402 and NK606 (a view by an index at run time: out of bounds, or on a chip that lacks it),
NK304, NK305, NK307 and NK404 (values: saturated, out of range, inexact in float32, a new NaN or infinity).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nkitools.dialects.public import find, publish
from nkitools.engines.enums import nc_version

if TYPE_CHECKING:
    from nkitools.engines.enums import *
    from nkitools.isa.activation import *
    from nkitools.isa.activation_fused import *
    from nkitools.isa.dma import *
    from nkitools.isa.elementwise import *
    from nkitools.isa.fused import *
    from nkitools.isa.gather import *
    from nkitools.isa.matmul import *
    from nkitools.isa.microscaling import *
    from nkitools.isa.move import *
    from nkitools.isa.random import *
    from nkitools.isa.reduce import *
    from nkitools.isa.registers import *
    from nkitools.isa.scan import *
    from nkitools.isa.search import *
    from nkitools.isa.select import *
    from nkitools.isa.statistics import *
    from nkitools.isa.sync import *
    from nkitools.issue.instruction import *


def get_nc_version() -> nc_version:
    """Return the generation of the chip that runs the kernel; outside of one, of that which a launch would take."""
    from nkitools.language.programs import current_generation

    return nc_version(current_generation().version)


def get_nc_sub_version() -> int:
    """Return the silicon revision within the generation, which is 0 on every chip: the first, and AWS's default."""
    return 0


publish(globals(), "nki.isa")


def __getattr__(name: str) -> Any:
    return find(globals(), "nki.isa", name)
