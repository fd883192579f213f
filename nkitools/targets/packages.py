"""What is installed on this machine, found without importing it.

The stand-in answers to AWS's names while it is installed, and PyPI has placeholder packages of those names; neither is
the real thing, so both are looked past here.
"""

from __future__ import annotations

from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec


@cache
def is_installed(package: str) -> bool:
    """Whether a top-level package that nobody stands in for (jax, torch_neuronx) could be imported."""
    return find_spec(package) is not None


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
