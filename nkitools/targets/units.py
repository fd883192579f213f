"""Processes share a device's units by locks: one NeuronCore, one GPU, one process each.

A lock is that of a file in the temporary directory; the operating system gives it back when its process ends, however.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from nkitools.targets.target import Device

_POLL_SECONDS = 0.2


class DeviceBusy(Exception):
    """All units of a device were in use for as long as was waited."""


@contextmanager
def units_of(devices: Sequence[Device], patience: float) -> Iterator[Mapping[str, str]]:
    """Hold one unit of each device; gives the environment of a process that uses them.

    What the user has set in the environment stays, but for what chooses the unit. Raises `DeviceBusy` after
    ``patience`` seconds, saying who has them.
    """
    environment: dict[str, str] = {}
    with ExitStack() as held:
        for device in devices:
            unit = held.enter_context(_one_of(device, patience))
            for name, value in device.environment(unit).items():
                environment[name] = (
                    value
                    if name.endswith("_VISIBLE_CORES") or "VISIBLE_DEVICES" in name
                    else (os.environ.get(name) or value)
                )
        yield environment


@contextmanager
def _one_of(device: Device, patience: float) -> Iterator[str]:
    until = time.monotonic() + patience
    while True:
        for unit in device.units():
            lock = _locked(unit)
            if lock is not None:
                try:
                    yield unit
                finally:
                    os.close(lock)
                return
        if time.monotonic() >= until:
            raise DeviceBusy(f"{device.name} busy: {'; '.join(_holder(unit) for unit in device.units())}")
        time.sleep(_POLL_SECONDS)


def _locked(unit: str) -> int | None:
    """The open file of the lock; None where another process has it."""
    import fcntl

    file = os.open(_path(unit), os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    os.ftruncate(file, 0)
    os.pwrite(file, str(os.getpid()).encode(), 0)
    return file


def _holder(unit: str) -> str:
    try:
        process = _path(unit).read_text().strip()
    except OSError:
        process = ""
    return f"{unit} is held by process {process or 'unknown'}"


def _path(unit: str) -> Path:
    return Path(tempfile.gettempdir()) / f"nkitools-{unit}.lock"
