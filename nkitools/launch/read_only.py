"""Writes into arguments that may not be written: NumPy says only that some array is read-only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Any

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.launch.arguments import Arguments
from nkitools.record.reporter import Reporter
from nkitools.record.source_sites import entries_of, is_internal, site_at
from nkitools.record.tensor_names import tensor_of
from nkitools.rules.finding import refuse


def check_write(error: ValueError, arguments: Arguments, reporter: Reporter) -> None:
    """Refuse (NK609), at the author's line, the write into an argument that has ended in ``error``; else do nothing."""
    if "read-only" not in str(error):
        return
    entries = entries_of(error)
    inside = list(takewhile(lambda entry: is_internal(entry.tb_frame.f_code.co_filename), reversed(entries)))
    if not inside or len(inside) == len(entries):
        return
    memories = (memory for entry in inside for memory in _arrays(entry.tb_frame.f_locals.values()))
    name = next(filter(None, map(arguments.read_only, memories)), "")
    if not name:
        return
    author = entries[-1 - len(inside)]
    frame = author.tb_frame
    what, remedy = "an array that is read-only", f"Pass a NumPy array that may be written, np.array({name})"
    if arguments.is_given_to_others(name):
        what, remedy = (
            "an array that several ranks are given, so that none may write it",
            "Give each rank its own array",
        )
    with reporter.placed(site_at(frame.f_code, author.tb_lineno, author.tb_lasti), frame):
        message = f"the kernel writes into its argument `{name}`, {what}"
        refuse("NK609", message, remedy=f"{remedy}, or write into a tensor of the kernel.")


def _arrays(values: Iterable[Any]) -> Iterator[Array]:
    """Yield the arrays among some values, tensors' and operands' too: an instruction has its destinations first."""
    for value in values:
        if isinstance(value, tuple):
            yield from _arrays(value)
            continue
        tensor = tensor_of(value)
        array = value if tensor is None else tensor.array
        if isinstance(array, np.ndarray):
            yield array
