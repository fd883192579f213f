"""Build the GIoU operator: ``python cpp_ops/giou/build.py`` leaves ``libgiou.so`` beside the sources.

On an instance it is AWS's loader that builds, for the device; elsewhere nkitools', for this host.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nkitools.customop

HERE = Path(__file__).parent
# What both loaders take; multicore=True: all eight GpSimd cores.
RECIPE: dict[str, Any] = {
    "name": "giou",
    "compute_srcs": [str(HERE / "giou.cpp")],
    "shape_srcs": [str(HERE / "shape.cpp")],
    "multicore": True,
}


def library() -> nkitools.customop.Library:
    """The operator on this host, as ``library().giou``."""
    return nkitools.customop.load(**RECIPE)


if __name__ == "__main__":
    try:
        from torch_neuronx.xla_impl.custom_op import load
    except ModuleNotFoundError:
        load = nkitools.customop.load
    load(**RECIPE, build_directory=str(HERE), verbose=True)
