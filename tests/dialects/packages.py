"""What tests of the stand-in imports share: packages as if they were installed."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nkitools.dialects import stand_in
from nkitools.dialects.stand_in import install_stand_in, remove_stand_in


@pytest.fixture(autouse=True)
def without_stand_in() -> Iterator[None]:
    """Each test begins without a stand-in, and the session's comes back after it."""
    was = stand_in._finder
    before = {name: module for name, module in sys.modules.items() if name.split(".")[0] in ("nki", "neuronxcc")}
    remove_stand_in()
    yield
    remove_stand_in()
    for name in [name for name in sys.modules if name.split(".")[0] in ("nki", "neuronxcc")]:
        del sys.modules[name]
    if was is not None:
        install_stand_in("builtin" if len(was.roots) == 2 else "auto")
        sys.modules.update(before)


def put(site: Path, **sources: str) -> None:
    """Write modules by their dotted names, with `__` for the dots; packages end in `__init__`."""
    for name, source in sources.items():
        path = site.joinpath(*name.replace("__init__", "INIT").split("__"))
        path = path.with_name(path.name.replace("INIT", "__init__") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)


def put_real_nki(site: Path) -> None:
    put(site, nki____init__="real = True\n", nki__language="real = True\n", nki__isa="real = True\n")


def put_real_neuronxcc(site: Path) -> None:
    put(
        site,
        neuronxcc____init__="real = True\n",
        neuronxcc__other="real = True\n",
        neuronxcc__nki____init__="real = True\n",
        neuronxcc__nki__language="real = True\n",
    )


def is_real(name: str) -> bool:
    return bool(getattr(importlib.import_module(name), "real", False))
