"""``nki.isa``: the instructions, and the enums and constants that they take."""

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
