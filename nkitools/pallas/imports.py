"""Imports JAX at its first use, filters its warnings, and reports what the installed JAX cannot do (NK607).

JAX's modules have the type Any: JAX is typed in part, and a type check must not depend on whether JAX is installed.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

from nkitools.authors_code.positions import line_of
from nkitools.record.source_sites import author_frame
from nkitools.rules.finding import Finding, NotModelled


def jax_module(path: str = "jax") -> Any:
    """Return the module ``path`` of JAX; ``NotModelled`` (NK607) if JAX is not installed."""
    if importlib.util.find_spec("jax") is None:
        remedy = "Install it with `pip install 'nkitools[pallas]'`."
        refuse("Pallas kernels run by way of JAX, which is not installed here", remedy)
    return importlib.import_module(path)


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


def refuse(message: str, remedy: str) -> NoReturn:
    """Raise ``NotModelled`` at the author's line that asked."""
    raise NotModelled(finding(message, remedy))


def finding(message: str, remedy: str, severity: str = "error") -> Finding:
    """Return a finding of NK607 at the author's current line."""
    frame = author_frame()
    place = (frame.f_code.co_filename, line_of(frame), frame.f_code.co_name) if frame else ("<unknown>", 0, "")
    return Finding.of("NK607", message, place, remedy=remedy, severity=severity)


def of_arrays(
    fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], is_array: Callable[[Any], bool]
) -> tuple[Callable[..., Any], list[Any]]:
    """Return ``fn`` as a function of its arrays, and the arrays: other arguments, such as shapes, are not traced."""
    tree_util = jax_module().tree_util
    leaves, tree = tree_util.tree_flatten((args, dict(kwargs)))
    places = [place for place, leaf in enumerate(leaves) if is_array(leaf)]

    def function(*arrays: Any) -> Any:
        given = dict(enumerate(leaves)) | dict(zip(places, arrays, strict=True))
        own, named = tree_util.tree_unflatten(tree, list(given.values()))
        return fn(*own, **named)

    return function, [leaves[place] for place in places]
