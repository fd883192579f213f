"""The guard of one child: it holds the child to its limits and ends it, with all that the child has started.

The guard is a process between the one that asks (the owner) and the child. It ends the child when the owner closes the
control socket, or dies; it becomes the parent of processes that the child leaves behind, in other sessions too. A
script of the standard library alone: ``guard.py CONTROL LIMITS COMMAND ...`` runs a command, and `keep` runs a function
in a fork.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import math
import os
import select
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple


def _by_path() -> Any:
    """Load nkitools' module of the systems by its path: nkitools itself is not imported."""
    place = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "platforms.py")
    spec = importlib.util.spec_from_file_location("nkitools_platforms", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if TYPE_CHECKING or __package__:
    from nkitools import platforms
else:
    platforms = _by_path()

CORES_GRACE = 2  # seconds of processor time beyond the limit on each core
OUT_OF_MEMORY = 12  # the exit status of a function that needs more memory than it may have
STACKS, INTERRUPT = b"s", b"i"  # what the owner may send
_MOST_PROCESSES = 256
_LOOK_SECONDS = 0.25  # between two looks at what all processes take
_READS = 64
_PIECE = 1 << 16


class Limits(NamedTuple):
    """The limits of a child; 0: no limit. ``seconds`` of time; ``memory`` and ``file_size`` in bytes.

    ``memory`` counts for each process, beyond what it has at its start, and for all processes together.
    """

    seconds: float = 0.0
    memory: int = 0
    file_size: int = 0

    def hold(self) -> None:
        """Give this process the limits that hold without its guard."""
        platforms.write_no_core()
        if self.seconds:
            cores = platforms.available_cores()
            platforms.limit_processor_time(math.ceil((self.seconds + CORES_GRACE) * cores))
        if self.memory:
            platforms.limit_address_space(self.memory)
        if self.file_size:
            platforms.limit_file_size(self.file_size)


class Text:
    """A pipe that a child writes into: the first bytes are kept, the others are counted."""

    def __init__(self, most: int) -> None:
        self.fd, self.end = os.pipe()
        os.set_blocking(self.fd, False)
        self.kept = bytearray()
        self.left_out = 0
        self._most = most

    def take(self) -> bool:
        """Read what is there now; False at its end."""
        try:
            found = os.read(self.fd, _PIECE)
        except BlockingIOError:
            return False
        room = self._most - len(self.kept)
        self.kept += found[:room]
        self.left_out += max(0, len(found) - room)
        return bool(found)

    def take_rest(self) -> None:
        """Read what is there, once the child has ended: more comes from a process that cannot be ended."""
        for _ in range(_READS):
            if not self.take():
                return


def keep_and_report(control: int, limits: Limits, run: Callable[[], object]) -> None:
    """Run a function in a child, and send the owner two lines of JSON: its number; its exit status and why it ended."""
    _report(control, *keep(control, limits, run, begun=lambda child: _report(control, child)))


def keep(
    control: int,
    limits: Limits,
    run: Callable[[], object],
    texts: Sequence[Text] = (),
    *,
    begun: Callable[[int], object] = bool,
) -> tuple[int, str]:
    """Run a function in a child, and return its exit status and why it was ended; all that it has started has ended.

    The reason: ``time``, ``memory`` or ``processes`` (a limit), ``owner`` (the other side of ``control`` was closed),
    or none. This process leads a session from now on, and lets go of stdin, stdout and stderr: their other ends see
    when the child closes them.
    """
    platforms.lead_session()
    platforms.adopt_orphans()
    wakes = platforms.wakes_at_child_end()
    child = platforms.fork_group()
    if child == 0:
        os.close(control)
        _play(limits, run)
    begun(child)
    _let_go_of_streams()
    for each in texts:
        os.close(each.end)
    status, why = _awaited(child, wakes, control, limits, {each.fd: each for each in texts})
    platforms.end_group(child)
    if status is None:
        status = platforms.exit_status(child)
    platforms.end_children()
    for each in texts:
        each.take_rest()
    return status, why


def _play(limits: Limits, run: Callable[[], object]) -> None:
    """Run the function as this process, which ends with it."""
    status = 1
    try:
        platforms.end_with_parent()
        platforms.forget_signals()
        limits.hold()
        run()
        status = 0
    except SystemExit as error:
        status = _status_of(error)
    except MemoryError:
        status = OUT_OF_MEMORY
    except BaseException:
        _print_traceback()
    finally:
        os._exit(status & 0xFF)


def _status_of(error: SystemExit) -> int:
    """Return the exit status that a program with this exit has; print its text, as Python does."""
    if error.code is None or isinstance(error.code, int):
        return error.code or 0
    os.write(2, f"{error.code}\n".encode(errors="replace"))
    return 1


def _print_traceback() -> None:
    import traceback

    with contextlib.suppress(BaseException):
        traceback.print_exc()
        sys.stderr.flush()


def _awaited(child: int, wakes: int, control: int, limits: Limits, texts: dict[int, Text]) -> tuple[int | None, str]:
    """Wait until a child has ended, or has to; read its texts meanwhile."""
    deadline = time.monotonic() + limits.seconds if limits.seconds else math.inf
    look = time.monotonic() + _LOOK_SECONDS if limits.memory else math.inf
    sources = {wakes, control, *texts}
    while (status := platforms.status_if_ended(child)) is None:
        left = min(deadline, look) - time.monotonic()
        ready, _, _ = select.select(sources, [], [], None if left == math.inf else max(0.0, left))
        if wakes in ready:
            os.read(wakes, _PIECE)
        for each in sources.intersection(ready) & texts.keys():
            if not texts[each].take():
                sources.discard(each)  # closed by the child
        if control in ready and not _obeyed(control, child):
            return None, "owner"
        if time.monotonic() >= deadline:
            return None, "time"
        if time.monotonic() >= look:
            if excess := excess_of(limits.memory):
                return None, excess
            look = time.monotonic() + _LOOK_SECONDS
    return status, ""


def _obeyed(control: int, child: int) -> bool:
    """Do what the owner asks for; False if it has gone."""
    try:
        asked = os.read(control, 64)
    except OSError:
        return False
    if STACKS in asked:
        platforms.ask_for_stacks(child)
    if INTERRUPT in asked:
        platforms.interrupt(child)
    return bool(asked)


def descendants(of: int) -> list[int]:
    """Return the processes that have come of one, its children and theirs; none if the system does not list them."""
    found: list[int] = []
    pending = [of]
    while pending and len(found) <= _MOST_PROCESSES:
        children = platforms.children_of(pending.pop())
        pending += children
        found += children
    return found


def excess_of(memory: int) -> str:
    """Return which limit the processes below this one break together: ``processes``, ``memory``, or none."""
    processes = descendants(os.getpid())
    if len(processes) > _MOST_PROCESSES:
        return "processes"
    if memory and len(processes) > 1 and sum(map(platforms.own_memory, processes)) > memory:
        return "memory"
    return ""


def _report(control: int, *said: object) -> None:
    with contextlib.suppress(OSError):  # the owner is gone
        os.write(control, json.dumps(said).encode() + b"\n")


def _let_go_of_streams() -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for each in range(3):
        os.dup2(nothing, each)
    os.close(nothing)


def main(arguments: list[str]) -> None:
    """Run a command under guard."""
    control, limits, command = int(arguments[0]), Limits(*json.loads(arguments[1])), arguments[2:]

    def run() -> None:
        try:
            platforms.become(command)
        except OSError as error:
            sys.exit(f"{command[0]}: {error.strerror}")

    keep_and_report(control, limits, run)


if __name__ == "__main__":
    main(sys.argv[1:])
