"""Accelerators as the operating system shows them: device nodes and the drivers' files, looked for anew each time.

A look is a glob or two. Nothing is remembered, so that a device lost in the middle of a session is missed at once.
``NKITOOLS_SYSROOT`` names another root than ``/`` for all of it: a container's, or that of a test.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from glob import glob

_ROOT = "NKITOOLS_SYSROOT"


def nodes(*patterns: str) -> tuple[str, ...]:
    """Return the device nodes that match a pattern like ``/dev/neuron*``, in order, without the root."""
    root = _root()
    return tuple(sorted(found[len(root) :] for pattern in patterns for found in glob(root + pattern)))


def said(directory: str, name: str) -> str | None:
    """Return the content of a driver's file ``name`` anywhere below ``directory``; None if none can be read.

    ``directory`` may contain ``*``. Drivers move their files between releases, so any place below the device will do.
    """
    for path in (path for place in sorted(glob(_root() + directory)) for path in _files(place, name)):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                return file.read().strip()
        except OSError:
            continue
    return None


def _files(directory: str, name: str) -> Iterator[str]:
    for parent, below, files in os.walk(directory):
        below.sort()
        if name in files:
            yield os.path.join(parent, name)


def _root() -> str:
    return os.environ.get(_ROOT, "").rstrip("/")
