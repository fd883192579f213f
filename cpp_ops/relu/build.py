"""Build the ReLUs: ``python cpp_ops/relu/build.py`` leaves ``librelu_<stage>.so`` in the directory of each stage.

On an instance it is AWS's loader that builds, for the device; elsewhere nkitools', for this host.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nkitools.customop

HERE = Path(__file__).parent
STAGES = ("element", "tcm", "multicore")


def recipe(stage: str) -> dict[str, Any]:
    """What both loaders take. Whether all eight GpSimd cores run is a matter of the library, not of an operator."""
    return {
        "name": f"relu_{stage}",
        "compute_srcs": [str(HERE / stage / "relu.cpp")],
        "shape_srcs": [str(HERE / stage / "shape.cpp")],
        "multicore": stage == "multicore",
    }


def library(stage: str) -> nkitools.customop.Library:
    """The operators ``relu_forward`` and ``relu_backward`` of a stage on this host."""
    return nkitools.customop.load(**recipe(stage))


if __name__ == "__main__":
    try:
        from torch_neuronx.xla_impl.custom_op import load
    except ModuleNotFoundError:
        load = nkitools.customop.load
    for each in STAGES:
        load(**recipe(each), build_directory=str(HERE / each), verbose=True)
