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


def by_path(*path: str) -> Any:
    """Load a module of nkitools by its path: nkitools itself is not imported."""
    place = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, *path)
    spec = importlib.util.spec_from_file_location(f"nkitools_{path[-1].removesuffix('.py')}", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if TYPE_CHECKING or __package__:
    from nkitools import platforms
else:
    platforms = by_path("platforms.py")

CORES_GRACE = 2  # seconds of processor time beyond the limit on each core
OUT_OF_MEMORY = 12  # the exit status of a function that needs more memory than it may have
STACKS, INTERRUPT = b"s", b"i"  # what the owner may send
_MOST_PROCESSES = 4096  # that are looked at
_LOOK_SECONDS = 0.05  # between two looks at what all processes take
_READS = 64
_PIECE = 1 << 16


class Limits(NamedTuple):
    """The limits of a child; 0: no limit. ``seconds`` of time; ``memory``, ``file_size`` and ``together`` in bytes.

    ``memory`` counts for each process, beyond what it has at its start; ``together`` for the child and all processes
    that it has started, and ``processes`` is their number.
    """

    seconds: float = 0.0
    memory: int = 0
    file_size: int = 0
    together: int = 0
    processes: int = 0

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
        """Read the text that is there after the child's end, but not for ever: a process that cannot be ended may write
        on.
        """
        for _ in range(_READS):
            if not self.take():
                return


def keep_and_report(control: int, limits: Limits, run: Callable[[], object]) -> None:
    """Run a function in a child, and send the owner two lines of JSON: its number; its exit status and why it ended."""
    report(control, keep(control, limits, run, begun=lambda child: report(control, [child])))


def keep(
    control: int,
    limits: Limits,
    run: Callable[[], object],
    texts: Sequence[Text] = (),
    *,
    begun: Callable[[int], object] = bool,
) -> tuple[int, str]:
    """Run a function in a child of this process, as `Guard.run`; this process lets go of stdin, stdout and stderr.

    Their other ends see when the child closes them.
    """

    def forked(child: int) -> None:
        begun(child)
        nothing = os.open(os.devnull, os.O_RDWR)
        for each in range(3):
            os.dup2(nothing, each)
        os.close(nothing)

    return Guard(control).run(limits, run, texts, forked)


class Guard:
    """This process as the guard of one child after the other, for the owner at the other end of ``control``."""

    def __init__(self, control: int) -> None:
        platforms.lead_session()
        platforms.adopt_orphans()
        self._control, self._wakes = control, platforms.wakes_at_child_end()

    def run(
        self,
        limits: Limits,
        run: Callable[[], object],
        texts: Sequence[Text] = (),
        forked: Callable[[int], object] = bool,
    ) -> tuple[int, str]:
        """Run a function in a child; return its exit status, and why it was ended. All that it has started has ended.

        The reason: ``time``, ``memory`` or ``processes`` (a limit), ``owner`` (the owner is gone), or none.
        ``forked`` is called with the child's number.
        """
        child = platforms.fork_group()
        if child == 0:
            os.close(self._control)
            _play(limits, run)
        forked(child)
        for each in texts:
            os.close(each.end)
        status, why = self._awaited(child, limits, {each.fd: each for each in texts})
        platforms.end_group(child)
        if status is None:
            status = platforms.exit_status(child)
        platforms.end_children()
        for each in texts:
            each.take_rest()
        return status, why

    def _awaited(self, child: int, limits: Limits, texts: dict[int, Text]) -> tuple[int | None, str]:
        """Wait until a child has ended, or has to; read its texts meanwhile."""
        deadline = time.monotonic() + limits.seconds if limits.seconds else math.inf
        look = time.monotonic() + _LOOK_SECONDS if limits.together or limits.processes else math.inf
        sources = {self._wakes, self._control, *texts}
        while (status := platforms.status_if_ended(child)) is None:
            left = min(deadline, look) - time.monotonic()
            ready, _, _ = select.select(sources, [], [], None if left == math.inf else max(0.0, left))
            if self._wakes in ready:
                os.read(self._wakes, _PIECE)
            for each in sources.intersection(ready) & texts.keys():
                if not texts[each].take():
                    sources.discard(each)  # closed by the child
            if self._control in ready and not _obeyed(self._control, child):
                return None, "owner"
            if time.monotonic() >= deadline:
                return None, "time"
            if time.monotonic() >= look:
                if excess := _excess(limits):
                    return None, excess
                look = time.monotonic() + _LOOK_SECONDS
        return status, ""


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


def _descendants(of: int, most: int) -> list[int]:
    """Return the processes that have come of one, its children and theirs; none if the system does not list them."""
    found: list[int] = []
    pending = [of]
    while pending and len(found) <= most:
        children = platforms.children_of(pending.pop())
        pending += children
        found += children
    return found


def _excess(limits: Limits) -> str:
    """Return the limit that the processes below this one exceed together: ``processes``, ``memory``, or ''."""
    processes = _descendants(os.getpid(), limits.processes or _MOST_PROCESSES)
    if len(processes) > (limits.processes or math.inf):
        return "processes"
    if limits.together and len(processes) > 1 and sum(map(platforms.own_memory, processes)) > limits.together:
        return "memory"
    return ""


def report(control: int, said: object) -> None:
    """Send the owner a line of JSON, if there is an owner."""
    with contextlib.suppress(OSError):
        os.write(control, json.dumps(said).encode() + b"\n")


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
