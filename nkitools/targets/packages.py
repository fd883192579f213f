"""The packages that are installed on this machine, found without importing them.

The stand-in answers to AWS's names while it is installed, and PyPI has placeholder packages of those names. Neither
counts as AWS's package.
"""

from __future__ import annotations

from functools import cache
from importlib import metadata
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec

from nkitools.dialects.stand_in import ORIGIN


@cache
def is_installed(package: str) -> bool:
    """Return whether a top-level package (jax, torch_neuronx) could be imported, apart from its stand-in."""
    spec = find_spec(package)
    if spec is not None and spec.origin == ORIGIN:
        spec = PathFinder.find_spec(package)
    return spec is not None


@cache
def aws_package(package: str, part: str) -> ModuleSpec | None:
    """AWS's own ``package`` on ``sys.path``, None where it is absent or a placeholder.

    A placeholder is an ``__init__`` alone; the real package has ``part`` (a submodule) in it.
    """
    # The path finder alone: the stand-in is a finder of its own, in front of it.
    spec = PathFinder.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    found = PathFinder.find_spec(f"{package}.{part}", list(spec.submodule_search_locations))
    return spec if found is not None else None


def is_placeholder(package: str, part: str) -> bool:
    """Return whether what is on ``sys.path`` under AWS's name is a package without ``part``: PyPI's placeholder."""
    return PathFinder.find_spec(package) is not None and aws_package(package, part) is None


def version_of(distribution: str) -> str | None:
    """Return the installed version of a distribution as pip has it; None where it is not installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
