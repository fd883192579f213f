"""A library in a build directory: ``lib<name>.so``, and beside it its shape functions and what it was built from."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

from nkitools.customop.build import Built, read_description
from nkitools.customop.errors import BuildError
from nkitools.platforms import LIBRARY_SUFFIX


def write_library(built: Built, directory: Path, *, multicore: bool) -> str:
    """Leave a library in a directory; the path of its ``lib<name>.so``. Each file takes its place at once."""
    stem = f"lib{built.recipe.name}"
    shape, compute = f"{stem}.shape{LIBRARY_SUFFIX}", f"{stem}{LIBRARY_SUFFIX}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for source, name in ((built.shape, shape), (built.compute, compute)):
            fresh = directory / f".{name}-{os.getpid()}"
            shutil.copyfile(source, fresh)
            os.replace(fresh, directory / name)
        told = replace(built, shape=shape, compute=compute).described()
        fresh = directory / f".{stem}.json-{os.getpid()}"
        fresh.write_text(json.dumps({"multicore": multicore, **told}, indent=1))
        os.replace(fresh, directory / f"{stem}.json")
    except OSError as error:
        raise BuildError(f"build_directory {directory} cannot be written: {error.strerror}") from error
    return str(directory / compute)


def read_library(path: Path) -> tuple[Built, bool]:
    """Return a library of a build directory, and whether it is for several cores."""
    path = Path(os.path.abspath(path))
    if not path.is_file():
        raise BuildError(f"there is no library {path}: nkitools.customop.load(..., build_directory=...) makes one")
    description = path.with_suffix(".json")
    if not description.is_file():
        raise BuildError(
            f"{path} is no library of nkitools: there is no {description.name} beside it. A library that "
            f"was built for a "
            "device does not run on a host; build it again from its sources with nkitools.customop.load."
        )
    try:
        multicore = bool(json.loads(description.read_text())["multicore"])
        built = read_description(description)
    except (ValueError, KeyError, TypeError) as error:
        raise BuildError(f"{description} is not what nkitools.customop.load writes: build the library again") from error
    if not Path(built.shape).is_file():
        raise BuildError(f"{Path(built.shape).name} is missing beside {path}: build the library again")
    return built, multicore
