"""Keep warnings about lines of JAX and NumPy, which an author cannot mend, from ending or filling a run."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator

# Modules whose lines are ignored, as regular expressions. No line of an author's belongs to them.
_OTHERS = r"(jax|jaxlib|numpy|ml_dtypes)(\.|$)"
OURS = r"nkitools\.pallas(\.|$)"


@contextlib.contextmanager
def without_jax_warnings() -> Iterator[None]:
    """Ignore warnings about lines of JAX and NumPy, and deprecations about lines of this package, within the block.

    Under ``-W error`` they would end the run. A deprecated name in a line of the author's still warns.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=_OTHERS)
        for category in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
            warnings.filterwarnings("ignore", category=category, module=OURS)
        yield
