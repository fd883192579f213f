"""JAX, imported when it is first used.

Its modules are typed Any here: JAX types itself in part, and what the type checker says must not depend on whether JAX
is installed.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from nkitools.pallas.compiler_refusals import refuse

OLDEST = (0, 10, 2)


def jax_module(path: str = "jax") -> Any:
    """Return the module ``path`` of JAX; ``NotModelled`` (NK607) where JAX is not installed."""
    if importlib.util.find_spec("jax") is None:
        remedy = "Install it with `pip install 'nkitools[pallas]'`."
        refuse("Pallas kernels run by way of JAX, which is not installed here", remedy)
    return importlib.import_module(path)


def check_version() -> None:
    """Refuse a JAX that is older than the supported ones (NK607); of a newer one report the names that have moved."""
    version = str(jax_module().__version__)
    if tuple(int(part) for part in version.split(".")[:3] if part.isdigit()) < OLDEST:
        refuse(
            f"Pallas kernels are checked with jax {'.'.join(map(str, OLDEST))} or newer; jax {version} is installed",
            "Install a newer one with `pip install --upgrade jax`.",
        )
