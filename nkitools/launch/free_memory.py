"""The memory that is free for this process, and the share of it that a run may take."""

from __future__ import annotations

import os
from pathlib import Path

from nkitools import options
from nkitools.chip.host_memory import HostMemory

_SHARE = 3, 4  # of the free memory


def host_memory() -> HostMemory:
    """Return the account of a run that begins: its limit is the option ``memory``, else a share of the free memory."""
    return HostMemory(memory_limit, at_once=options.value("memory") is not None)


def memory_limit() -> tuple[int, str] | None:
    """Return the bytes that a run or a compiler may take, and what says so; None where the system does not say it."""
    asked = options.value("memory")
    return _share() if asked is None else (int(float(str(asked)) * (1 << 30)), "the option `memory`")


def _share() -> tuple[int, str] | None:
    free = free_bytes()
    return None if free is None else (free * _SHARE[0] // _SHARE[1], "three quarters of the memory that is free")


def free_bytes(root: Path = Path("/")) -> int | None:
    """Return the bytes that this process can still get, None where the system does not say.

    The machine, each control group of the process (version 1 and 2) and its own limit of address space leave some: the
    least of these. File pages that the kernel can drop count as free.
    """
    left = [_available(root), *_left_in_groups(root), _left_of_address_space(root)]
    known = [each for each in left if each is not None]
    return max(0, min(known)) if known else None


def _available(root: Path) -> int | None:
    for line in _text(root / "proc/meminfo").splitlines():
        name, _, amount = line.partition(":")
        if name == "MemAvailable":
            return int(amount.split()[0]) << 10
    try:  # macOS: all memory, as it does not say how much is free
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


_FILES = {
    "": ("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    "memory": ("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


def _left_in_groups(root: Path) -> list[int]:
    """Return what the control groups of the process leave: of its own group and of those above."""
    left = []
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            if controller not in _FILES:
                continue
            top, limit, usage, dropped = _FILES[controller]
            inside = Path(path.lstrip("/"))
            for each in (inside, *inside.parents):
                group = root / top / each
                most, used = _text(group / limit).strip(), _text(group / usage).strip()
                if most.isdigit() and used.isdigit():
                    left.append(int(most) - int(used) + _statistic(group / "memory.stat", dropped))
    return left


def _statistic(path: Path, name: str) -> int:
    for line in _text(path).splitlines():
        key, _, number = line.partition(" ")
        if key == name and number.isdigit():
            return int(number)
    return 0


def _left_of_address_space(root: Path) -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    pages = _text(root / "proc/self/statm").split()
    if most == resource.RLIM_INFINITY or not pages:
        return None
    return most - int(pages[0]) * resource.getpagesize()


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, ValueError):
        return ""
