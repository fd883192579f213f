"""Locks by which processes share a device's units: one NeuronCore, one GPU, one process each.

A lock is that of a file in the temporary directory, for a logical NeuronCore one for each of its physical cores; the
operating system gives it back when its process ends, however. Waiting processes share another lock, so that holders can
be fair.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from nkitools.platforms import lock
from nkitools.targets.target import Device

OWN_FOLDER = "nkitools-artifacts-"  # how the name of a folder begins that nkitools has made, and may empty
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
            for name, value in device.defaults().items():
                environment[name] = os.environ.get(name) or value
            for name in device.folders:
                if not os.environ.get(name):
                    environment[name] = held.enter_context(tempfile.TemporaryDirectory(prefix=OWN_FOLDER))
            environment.update(device.environment(unit))
        yield environment


def is_waited_for(device: Device) -> bool:
    """Return whether another process waits for a unit of ``device``."""
    with _opened(_queue(device)) as file:
        return not lock(file, waits=False)


@contextmanager
def _one_of(device: Device, patience: float) -> Iterator[str]:
    unit, locks = _taken(device) or _awaited(device, patience)
    with locks:
        yield unit


def _taken(device: Device) -> tuple[str, ExitStack] | None:
    """Return the first unit that is free, with the open files of its locks."""
    for unit in device.units():
        with ExitStack() as held:
            for each in device.locks(unit):
                locked = _locked(each)
                if locked is None:
                    break
                held.enter_context(locked)
            else:
                return unit, held.pop_all()
    return None


def _awaited(device: Device, patience: float) -> tuple[str, ExitStack]:
    until = time.monotonic() + patience
    with _opened(_queue(device)) as queue:
        lock(queue, shared=True)
        while time.monotonic() < until:
            time.sleep(_POLL_SECONDS)
            taken = _taken(device)
            if taken is not None:
                return taken
    units = device.units()
    holders = "; ".join(_holder(each) for unit in units for each in device.locks(unit))
    raise DeviceBusy(f"{device.name} busy: {holders}. It has {len(units)} for processes to share (pytest-xdist: -n)")


def _locked(unit: str) -> IO[str] | None:
    """Return the open file of the lock; None where another process has it."""
    file = _opened(_path(unit))
    if not lock(file, waits=False):
        file.close()
        return None
    if file.writable():
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
    return file


def _opened(path: Path) -> IO[str]:
    try:
        return open(path, "a", encoding="utf-8")
    except PermissionError:  # another user has made it; to lock it, it need not be written
        return open(path, encoding="utf-8")


def _holder(unit: str) -> str:
    try:
        process = _path(unit).read_text().strip()
    except OSError:
        process = ""
    return f"{unit} is held by process {process or 'unknown'}"


def _path(unit: str) -> Path:
    return Path(tempfile.gettempdir()) / f"nkitools-{unit}.lock"


def _queue(device: Device) -> Path:
    return _path(f"{device.key}-queue")
