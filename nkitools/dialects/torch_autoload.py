"""Torch's own switch against loading a device's backend by itself, off while the stand-in for AWS's nki is in place.

``import torch`` loads an installed torch_neuronx 2.10 or higher, which imports AWS's ``nki``. With the stand-in in that
place the import of torch would fail. Source: torch/__init__.py, ``_is_device_backend_autoload_enabled``.
"""

from __future__ import annotations

import os

SWITCH = "TORCH_DEVICE_BACKEND_AUTOLOAD"
# What the switch was before; empty where it was not set. Processes inherit both variables and can undo both.
_BEFORE = "NKITOOLS_TORCH_AUTOLOAD_BEFORE"


def switch_off() -> None:
    """Let ``import torch`` load no backend, in this process and in those that it starts."""
    if _BEFORE not in os.environ:
        os.environ[_BEFORE] = os.environ.get(SWITCH, "")
        os.environ[SWITCH] = "0"


def switch_back() -> None:
    """Undo `switch_off`: torch loads backends as the user has set it."""
    if _BEFORE in os.environ:
        before = outside_environment()
        os.environ.pop(SWITCH, None)
        del os.environ[_BEFORE]
        if SWITCH in before:
            os.environ[SWITCH] = before[SWITCH]


def outside_environment() -> dict[str, str]:
    """Return the environment for a process without the stand-in."""
    environment = dict(os.environ)
    before = environment.pop(_BEFORE, None)
    if before:
        environment[SWITCH] = before
    elif before is not None:
        environment.pop(SWITCH, None)
    return environment
