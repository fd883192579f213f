"""The only place that names an operating system: what Linux does, and what macOS gets instead. Windows takes WSL.

nkitools has not been run on macOS yet; the docstrings say what is written for it. The standard library alone is
imported, so that the scripts which run beside nkitools can load this file by its path.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    import mmap
    import subprocess
    from multiprocessing.context import BaseContext
    from pathlib import Path

IS_LINUX = sys.platform == "linux"
IS_MACOS = sys.platform == "darwin"

NEURON_NODES = "/dev/neuron[0-9]*"
NEURON_FILES = "/sys/devices/virtual/neuron_device"  # of AWS's driver
NEURON_COMPILE_CACHE = "/var/tmp/neuron-compile-cache"
TPU_NODES = ("/dev/accel[0-9]*", "/dev/vfio/[0-9]*")
GPU_NODES = ("/dev/nvidia[0-9]*",)
"""Where devices and their files are on Linux. macOS has none of them: tests on hardware are skipped there."""

KERNEL_FILES = ("/proc/", "/sys/", "/dev/")
"""Folders whose files are no files on a disk. macOS has the last alone."""

LIBRARY_SUFFIX = ".so"
"""Of custom operators, whose names AWS's documentation gives. macOS loads a library by any name."""


LINE_TOOLS = ("addr2line", "llvm-addr2line")
"""The programs that find the line of an address. macOS has `APPLES_LINE_TOOL` instead, which has other arguments."""
APPLES_LINE_TOOL = "atos"


def refusal(system: str = "") -> str:
    """Return why nkitools does not run on a system (`sys.platform`, this one): nothing for Linux and macOS."""
    if (system or sys.platform) not in ("win32", "cygwin"):
        return ""
    return (
        "nkitools runs on Linux and macOS. On Windows use WSL, the Windows Subsystem for Linux: `wsl --install`, then "
        "install nkitools and run it inside"
    )


def is_own_command() -> bool:
    """Return whether this process is nkitools' command, as ``nkitools`` or ``python -m nkitools``; same on macOS."""
    program: str = [*getattr(sys, "argv", ()), ""][0]
    return program == "-m" or os.path.splitext(os.path.basename(program))[0] == "nkitools"


def start_group(command: Sequence[str], **settings: Any) -> subprocess.Popen[Any]:
    """Start a process that leads a session and a group of its own; macOS does the same."""
    import subprocess

    return subprocess.Popen(command, start_new_session=True, **settings)


def end_group(leader: int) -> None:
    """Kill a group of processes, where there is one; macOS does the same."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def fork_group() -> int:
    """Fork; the child, which gets 0, leads a group of its own. macOS does the same."""
    child = os.fork()
    with suppress(OSError):  # parent and child ask for it, so that it holds as of the first of both
        os.setpgid(child, child)
    return child


def fork_unawaited() -> int:
    """Fork; the parent, which gets another number than 0, need not ask for the child's end. Same on macOS."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    return os.fork()


def lead_session() -> None:
    """Leave the session of the process that started this one, for one of its own; macOS does the same."""
    with suppress(OSError):  # it leads one already
        os.setsid()


def exit_status(child: int) -> int:
    """Wait for a child; return its exit status, the negative number of a signal that ended it. Same on macOS."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def status_if_ended(child: int) -> int | None:
    """Return the exit status of a child that has ended, None for one that runs; same on macOS."""
    ended, status = os.waitpid(child, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def wakes_at_child_end() -> int:
    """Return a descriptor that can be read as soon as a child has ended; same on macOS."""
    reads, writes = os.pipe()
    for each in (reads, writes):
        os.set_blocking(each, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # a signal without a handler of Python's wakes nothing
    signal.set_wakeup_fd(writes, warn_on_full_buffer=False)
    return reads


def forget_signals() -> None:
    """Give signals the meaning that a new program has, after a fork; same on macOS."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def become(command: Sequence[str]) -> None:
    """Run a program in the place of this process, with the signals that Python ignores as they were; same on macOS."""
    forget_signals()
    for each in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(each, signal.SIG_DFL)
    os.execvp(command[0], list(command))


def end_at_ctrl_c() -> None:
    """Let Ctrl-C end this process at once, whatever it waits for; same on macOS."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def signal_name(status: int) -> str:
    """Return the name of the signal that ended a process with a negative status, such as SIGABRT; same on macOS."""
    return signal.Signals(-status).name


def ask_for_stacks(process: int) -> None:
    """Make a process that `answers_for_stacks` write where its threads stand; same on macOS."""
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGUSR1)


def interrupt(process: int) -> None:
    """Send Ctrl-C to a process; same on macOS."""
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGINT)


def answers_for_stacks(file: int = 2) -> None:
    """Let this process write the stacks of its threads when it is asked for them; same on macOS."""
    import faulthandler

    faulthandler.register(signal.SIGUSR1, file, all_threads=True)


def end_with_parent() -> None:
    """Have this process killed as soon as its parent dies. macOS has no such request: it ends when a pipe closes."""
    if IS_LINUX:
        _prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def adopt_orphans() -> None:
    """Become the parent of all that descendants leave, in other sessions too. On macOS it goes to the system."""
    if IS_LINUX:
        _prctl(36, 1)  # PR_SET_CHILD_SUBREAPER


def _prctl(what: int, value: int) -> None:
    import ctypes

    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(what, value, 0, 0, 0)


def children_of(process: int) -> list[int]:
    """Return the children of a process. On macOS none: it has no /proc that lists them."""
    found: list[int] = []
    with suppress(OSError, ValueError):  # it has ended meanwhile
        for thread in os.listdir(f"/proc/{process}/task"):
            found += map(int, _text(f"/proc/{process}/task/{thread}/children").split())
    return found


def end_children() -> None:
    """Kill the children of this process, and those that it adopts meanwhile. On macOS none is known."""
    for _ in range(64):
        left = children_of(os.getpid())
        for each in left:
            with suppress(OSError):
                os.kill(each, signal.SIGKILL)
                os.waitpid(each, 0)
        if not left:
            return


@contextmanager
def alarm(seconds: float, ring: Callable[[], None]) -> Iterator[None]:
    """Call ``ring`` in the main thread once a block has taken so long; same on macOS."""
    before = signal.signal(signal.SIGALRM, lambda *_: ring())
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def workers_context(*, has_threads: bool) -> BaseContext:
    """Return the start method of workers: a fork, which has all imports; on macOS and beside threads a new process."""
    import multiprocessing

    return multiprocessing.get_context("spawn" if has_threads or IS_MACOS else "fork")


def available_cores() -> int:
    """Return the number of cores that this process may use; on macOS, which has no affinities, all of the machine's."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def address_space(root: str | Path = "/") -> int:
    """Return the bytes of address space of this process. On macOS 0: it does not say."""
    pages = _text(os.path.join(root, "proc/self/statm")).split()
    return int(pages[0]) * os.sysconf("SC_PAGESIZE") if pages else 0


def limit_address_space(extra: int) -> None:
    """Let this process take so many bytes beyond what it has, 0 for no limit. On macOS nothing is limited."""
    import resource

    used = address_space()
    if used:
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        wanted = used + extra if extra else hard
        resource.setrlimit(resource.RLIMIT_AS, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))


@contextmanager
def limited_data(extra: int | None) -> Iterator[None]:
    """Limit the data of this process and of those that it starts, beyond what it has; None: no limit.

    On macOS the limit counts from nothing, as the system does not say what a process has.
    """
    import resource

    before = resource.getrlimit(resource.RLIMIT_DATA)
    if extra is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (_kib("/proc/self/status", "VmData:") + extra, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def write_no_core() -> None:
    """Keep the system from writing a core file of this process; same on macOS."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def limit_processor_time(seconds: int) -> None:
    """End this process once it has used so many seconds of processor time: by SIGXCPU; same on macOS."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if hard == resource.RLIM_INFINITY or seconds < hard:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, hard))


def limit_file_size(most: int) -> None:
    """Refuse this process to write more bytes into a file, by an OSError; same on macOS."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    if hard == resource.RLIM_INFINITY or most < hard:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))


def own_memory(process: int) -> int:
    """Return the bytes that a process has, with its share of pages that several have. On macOS 0: it does not say."""
    return _kib(f"/proc/{process}/smaps_rollup", "Pss_Anon:", "Pss_Shmem:")


def free_memory(root: str | Path = "/") -> int | None:
    """Return the bytes that this process can still allocate; None if unknown.

    On Linux the machine, each control group of the process (version 1 and 2) and its limit of address space leave some
    bytes: the least of these. File pages that the kernel can drop count as free. On macOS all memory of the machine.
    """
    system = os.path.join(root, "proc/meminfo")
    available = _kib(system, "MemAvailable:") if "MemAvailable:" in _text(system) else _all_memory()
    known = [each for each in (available, *_left_in_groups(root), _left_of_address_space(root)) if each is not None]
    return max(0, min(known)) if known else None


def _all_memory() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return None


_GROUPS: Mapping[str, tuple[str, str, str, str]] = {
    "": ("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    "memory": ("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


def _left_in_groups(root: str | Path) -> list[int]:
    """Return the bytes that the process's control group and those above it leave."""
    left = []
    for line in _text(os.path.join(root, "proc/self/cgroup")).splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            if controller not in _GROUPS:
                continue
            top, limit, usage, dropped = _GROUPS[controller]
            names = path.strip("/").split("/")
            for depth in range(len(names), -1, -1):
                group = os.path.join(root, top, *names[:depth])
                most, used = (_text(os.path.join(group, each)).strip() for each in (limit, usage))
                if most.isdigit() and used.isdigit():
                    left.append(int(most) - int(used) + _statistic(os.path.join(group, "memory.stat"), dropped))
    return left


def _statistic(path: str, name: str) -> int:
    numbers = dict(line.split(maxsplit=1) for line in _text(path).splitlines() if " " in line)
    return int(numbers.get(name, 0))


def _left_of_address_space(root: str | Path) -> int | None:
    import resource

    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    used = address_space(root)
    return None if most == resource.RLIM_INFINITY or not used else most - used


def shared_map(file: int, size: int) -> mmap.mmap:
    """Map a file that processes share, with all its pages at once. On macOS page by page, as each is touched."""
    import mmap

    return mmap.mmap(file, size, flags=mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0))


def unused_map(size: int) -> mmap.mmap:
    """Map zeros without a promise that there is memory for them. macOS never promises it."""
    import mmap

    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    return mmap.mmap(-1, size, flags=flags)


def anonymous_file() -> int:
    """Return the descriptor of a file that lives in memory. On macOS of one that is removed at once."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("nkitools", 0)
    import tempfile

    file, path = tempfile.mkstemp(prefix="nkitools-")
    os.unlink(path)
    return file


def lock(file: IO[str], *, shared: bool = False, waits: bool = True) -> bool:
    """Lock an open file until it is closed or its process ends; False if another process has it. Same on macOS."""
    import fcntl

    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(file, kind if waits else kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def user_cache() -> Path:
    """Return the folder of the user's caches: ``~/.cache``, or XDG_CACHE_HOME. On macOS ``~/Library/Caches``."""
    from pathlib import Path

    if IS_MACOS:
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def system_words() -> str:
    """Return system and processor in two words: ``Linux x86_64``, ``Darwin arm64`` on macOS."""
    import platform

    return f"{platform.system()} {platform.machine()}"


def processor_words() -> list[str]:
    """Return words that identify the kind of processor; on macOS only those of the module `platform`."""
    import platform

    lines = _text("/proc/cpuinfo").splitlines()
    kinds = ("model name", "flags", "Features", "CPU part")
    return [platform.machine(), platform.processor(), *dict.fromkeys(each for each in lines if each.startswith(kinds))]


def code_flags() -> tuple[str, ...]:
    """Return the flags of code for a library on this processor. macOS on ARM takes -mcpu, as Linux on ARM does."""
    import platform

    return ("-fPIC", "-march=native" if platform.machine() in ("x86_64", "AMD64") else "-mcpu=native")


def library_flags() -> tuple[str, ...]:
    """Return the flags that link a library with nothing undefined and names of its own. On macOS both hold already."""
    return ("-shared",) if IS_MACOS else ("-shared", "-Wl,-Bsymbolic", "-Wl,-z,defs")


def program_flags() -> tuple[str, ...]:
    """Return the libraries of a program that loads others and has threads. On macOS they are part of the system's."""
    return () if IS_MACOS else ("-ldl", "-lpthread")


def keep_symbols(library: Path) -> None:
    """Keep debug information beside a library. Only macOS has to: there it lies in objects that are about to go."""
    if IS_MACOS and library.exists():
        import subprocess

        subprocess.run(["dsymutil", str(library)], check=False, capture_output=True)


def compiler_remedy() -> str:
    """Return the command that installs a C++ compiler: of Debian, and on macOS that of Apple's tools."""
    return "xcode-select --install" if IS_MACOS else "apt-get install g++, or your system's like"


def _kib(path: str, *names: str) -> int:
    """Return the bytes of lines like ``VmData:  12 kB``, 0 where there is no such file."""
    lines = _text(path).splitlines()
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(names))


def _text(path: str) -> str:
    with suppress(OSError, ValueError), open(path) as file:
        return file.read()
    return ""
