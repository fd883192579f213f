"""Neuron custom C++ operators on this host: built unmodified, run on eight simulated GpSimd cores, and judged.

    library = nkitools.customop.load("giou", ["giou.cpp"], ["shape.cpp"], multicore=True)
    scores = library.giou(boxes, targets)          # raises at the first error
    run = library.giou.run(boxes, targets)         # outputs, findings, prints, cores

`load` has the signature of AWS's ``torch_neuronx.xla_impl.custom_op.load``, and `load_library` that of its namesake.
"""

from __future__ import annotations

from nkitools.customop.errors import BuildError
from nkitools.customop.library import Library, load, load_library
from nkitools.customop.operator import Operator
from nkitools.customop.run import CoreCounters, OperatorRun
from nkitools.customop.torch_modules import RealPackage, install_torch_stand_in, remove_torch_stand_in, torch_stand_in
from nkitools.customop.torch_operators import register_with_torch
from nkitools.facts.options import cache_directory

__all__ = [
    "BuildError", "CoreCounters", "Library", "Operator", "OperatorRun", "RealPackage", "cache_directory",
    "install_torch_stand_in", "load", "load_library", "register_with_torch", "remove_torch_stand_in", "torch_stand_in",
]  # fmt: skip
