"""The inputs that a kernel may not write to (NK406): a ``nki.jit`` kernel's, unless ``nt.mutable_tensor``."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from nkitools.chip.view_checks import describe
from nkitools.rules.finding import report

IMMUTABLE: ContextVar[frozenset[int]] = ContextVar("nkitools_legacy_immutable", default=frozenset())


def check_writable(what: str, dst: Any) -> None:
    """NK406: DMA, which alone writes to HBM, is given an immutable input as its destination."""
    if dst.base.storage.id in IMMUTABLE.get():
        message = f"{what}: {describe(dst.base)} is an input of the kernel and is written to"
        report("NK406", message, about=(dst.base,))
