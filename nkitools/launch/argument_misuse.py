"""Arguments that are no arrays and are used as tensors: Python says only that a list has no ``shape``."""

from __future__ import annotations

import dis
from bisect import bisect_right
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

from nkitools.chip.argument_types import Argument
from nkitools.chip.tensor import NkiTensor
from nkitools.launch.nested_arguments import parts_of
from nkitools.launch.signatures import bind, signature_of
from nkitools.record.reporter import Reporter
from nkitools.record.source_sites import entries_of, is_internal, site_at
from nkitools.rules.finding import refuse


def check_use(
    error: AttributeError,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    reporter: Reporter,
) -> None:
    """Refuse (NK609), at the author's line, the tensor's attribute that ``error`` has not found on an argument.

    Else do nothing: an author's own AttributeError is theirs.
    """
    entry = entries_of(error)[-1] if error.__traceback__ is not None else None
    if entry is None or is_internal(entry.tb_frame.f_code.co_filename) or not hasattr(NkiTensor, error.name or ""):
        return
    if not isinstance(error.obj, (list, tuple, int, float, str, type(None))):
        return
    loaded = _loaded(entry)
    name = next(
        (
            place
            for place, value in _parts(function, args, kwargs)
            # None and small numbers are one object wherever they come from: there the name must be the same, too.
            if value is error.obj and (place == loaded or isinstance(value, (list, tuple)))
        ),
        "",
    )
    if not name:
        return
    kind = "None" if error.obj is None else f"a {type(error.obj).__name__}"
    with reporter.placed(site_at(entry.tb_frame.f_code, entry.tb_lineno, entry.tb_lasti), entry.tb_frame):
        message = f"the kernel uses its argument `{name}` as a tensor (.{error.name}), and it is called with {kind}"
        refuse("NK609", message, remedy=_remedy(name, error.obj))


def _loaded(entry: TracebackType) -> str:
    """Return the local variable whose attribute was asked for, '' where that was no variable."""
    instructions = list(dis.get_instructions(entry.tb_frame.f_code))
    at = bisect_right([each.offset for each in instructions], entry.tb_lasti) - 1
    before = instructions[at - 1]
    name = before.argval[-1] if isinstance(before.argval, tuple) else before.argval
    return str(name) if before.opname.startswith("LOAD_FAST") else ""


def _parts(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the arguments and what is inside of them, each with its place."""
    for name, value in bind("", signature_of(function), args, kwargs).arguments.items():
        yield from parts_of(value, name)


def _remedy(name: str, value: Argument) -> str:
    if value is None:
        return f"Pass an array for `{name}`, or ask `if {name} is None` in the kernel."
    if isinstance(value, str):
        return f"Pass a NumPy array for `{name}`."
    return f"Pass a NumPy array: np.array({name}, dtype=np.float32)."
