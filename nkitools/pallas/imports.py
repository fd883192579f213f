"""JAX, imported when it is first used.

Its modules are typed Any here: JAX types itself in part, and what the type checker says must not depend on whether JAX
is installed.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from nkitools.pallas.compiler_refusals import refuse


def jax_module(path: str = "jax") -> Any:
    """Return the module ``path`` of JAX; ``NotModelled`` (NK607) where JAX is not installed."""
    if importlib.util.find_spec("jax") is None:
        remedy = "Install it with `pip install 'nkitools[pallas]'`."
        refuse("Pallas kernels run by way of JAX, which is not installed here", remedy)
    return importlib.import_module(path)
