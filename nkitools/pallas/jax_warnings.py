"""Keeps warnings of JAX and NumPy about lines of their own away from the author, who can do nothing about them."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator

# The modules of the lines that are warned of, as regular expressions. An author's own line is of none of them.
_OTHERS = r"(jax|jaxlib|numpy|ml_dtypes)(\.|$)"
OURS = r"nkitools\.pallas(\.|$)"


@contextlib.contextmanager
def without_jax_warnings() -> Iterator[None]:
    """Ignore within what is warned of in lines of JAX and NumPy, and what is deprecated of it in lines of this package.

    Warnings that are errors (``-W error``) would end a run there. A deprecated name in a line of the author's warns as
    ever.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=_OTHERS)
        for category in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
            warnings.filterwarnings("ignore", category=category, module=OURS)
        yield
