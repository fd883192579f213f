"""``nki.isa`` of the legacy dialect: instructions that return their result as a new tile.

Every instruction can give these errors and warnings, beside those that its docstring lists: NK611 (a call outside of a
kernel), NK602 and NK604 (a tile, index or mask where a Python value is meant), NK304, NK305, NK307 and NK404 (values:
saturated, out of range, inexact in float32, a new NaN or infinity).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from nkitools.dialects.legacy.aws_names.enums import nc_version
from nkitools.dialects.legacy.kernels.error_codes import OUTSIDE
from nkitools.dialects.legacy.kernels.keywords import Keyword
from nkitools.dialects.legacy.semantics import LEGACY
from nkitools.dialects.legacy.tiles.tensor import Tensor
from nkitools.dialects.public import find, publish
from nkitools.engines.enums import nc_version as modern_versions
from nkitools.language.programs import current_generation
from nkitools.rules.finding import not_modelled

if TYPE_CHECKING:
    from nkitools.dialects.legacy.aws_names.enums import *
    from nkitools.dialects.legacy.aws_names.limits import *
    from nkitools.dialects.legacy.nisa.fused import *
    from nkitools.dialects.legacy.nisa.gather import *
    from nkitools.dialects.legacy.nisa.moving import *
    from nkitools.dialects.legacy.nisa.search import *
    from nkitools.dialects.legacy.nisa.select import *
    from nkitools.dialects.legacy.nisa.statistics import *
    from nkitools.dialects.legacy.nisa.vector_scalar import *
    from nkitools.dialects.legacy.nl.linear import *


def get_nc_version() -> Any:
    """Return the generation of the running chip, outside of a kernel of the chip of a launch, as an nisa.nc_version.

    For NeuronCore-v4, which SDK 2.26 does not name, it is the member of NKI 0.6; it compares with the others.
    """
    generation = current_generation()
    return (nc_version if generation.in_legacy_dialect else modern_versions)(generation.version)


def builtin_custom_op(
    function_name: str,
    lib_file_name: str,
    ulib_to_ucode_version: str,
    ulib_to_isa_version: str,
    srcs: Sequence[Tensor],
    dsts: Sequence[Tensor],
    **kwargs: Keyword,
) -> NoReturn:
    """Raise NK607: a function of a library that is built for the GpSimd Engine cannot run here."""
    not_modelled(
        f"nisa.builtin_custom_op calls `{function_name}` of the library {lib_file_name} on the GpSimd Engine; the "
        "simulator cannot run such code",
        remedy="Compute the same with instructions, or leave the call out where the simulator runs.",
    )


publish(globals(), "neuronxcc.nki.isa", dialect=LEGACY, outside=OUTSIDE)


def __getattr__(name: str) -> Any:
    return find(globals(), "neuronxcc.nki.isa", name)
