"""Children of this process: each ends with it, keeps its limits without it, and leaves no process behind.

`Child` runs a command, `FunctionChild` a function of this process, and `WarmCalls` (`nkitools.processes.warm`) calls
functions in forks of a process with modules imported beforehand. A guard stands between this process and the child
(`nkitools.processes.guard`).
"""

from __future__ import annotations

import json
import pickle
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from nkitools.platforms import end_group, signal_name, start_group, workers_context
from nkitools.processes.guard import INTERRUPT, OUT_OF_MEMORY, STACKS, Limits, keep_and_report

__all__ = [
    "AnsweringChild",
    "Child",
    "End",
    "FunctionChild",
    "Limits",
    "Lost",
    "Output",
    "PipedChild",
    "TimedOut",
    "checked_seconds",
    "log_file",
    "output_of",
    "outputs_of",
    "text_of",
]

MOST_SECONDS = 86_400.0
_GUARD = str(Path(__file__).with_name("guard.py"))
_DUMP_SECONDS = 0.5
_END_SECONDS = 10.0  # that a guard may take to end all processes
_LOOK_SECONDS = 2.0
_NO_LIMIT = Limits()
_controls: weakref.WeakSet[socket.socket] = weakref.WeakSet()
_TOO_MUCH_TIME = "SIGXCPU"


class TimedOut(Exception):
    """A child has not ended in time; ``stacks``: its stderr, with the places where its threads stood."""

    def __init__(self, seconds: float, stacks: str = "") -> None:
        super().__init__(f"did not end within {seconds:g} s")
        self.seconds, self.stacks = seconds, stacks


class Lost(Exception):
    """A child has gone without an answer."""


@dataclass(frozen=True)
class End:
    """The end of a child: its exit status, and the reason ``why`` its guard ended it, if it did."""

    status: int
    why: str = ""
    limits: Limits = _NO_LIMIT

    @property
    def is_out_of_memory(self) -> bool:
        """True if the child needed more memory than it may have."""
        return self.why == "memory" or (bool(self.limits.memory) and self.status == OUT_OF_MEMORY)

    @property
    def described(self) -> str:
        """The end in two words: ``exit status 1``, or the name of a signal."""
        return f"exit status {self.status}" if self.status >= 0 else signal_name(self.status)

    def words(self) -> str:
        """Return a sentence on how the child ended, without a full stop."""
        if self.why == "time":
            return f"it did not end within {self.limits.seconds:g} s"
        if self.is_out_of_memory:
            most = self.limits.together if self.why else self.limits.memory
            return f"it needs more memory than it may have ({most / 2**30:g} GiB)"
        if self.why == "processes":
            return "it started too many processes"
        if self.why:
            return "its process was lost"
        if self.status >= 0:
            return f"its process ended with exit code {self.status}"
        if self.described == _TOO_MUCH_TIME:
            return "it took too much processor time"
        return f"its process was ended by {self.described}"


def checked_seconds(seconds: float) -> float:
    """Return a time limit. ValueError if it is no number of seconds above 0, or more than a day."""
    if not 0 < seconds <= MOST_SECONDS:  # NaN is neither
        raise ValueError(f"seconds is {seconds:g}: it must be more than 0 and at most {MOST_SECONDS:g}, which is a day")
    return seconds


class Guarded(ABC):
    """A child of this process, seen from here: how it ends, and what it can be asked for."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._end: End | None = None
        self._said: list[list[Any]] = []
        self._rest = b""
        self._control, self._there = socket.socketpair()
        _controls.add(self._control)

    def poll(self) -> End | None:
        """Return the end of the child; None while it runs."""
        return self.wait(0)

    def wait(self, seconds: float | None = None) -> End | None:
        """Wait until the child has ended, and all that it has started; None if it has not within ``seconds``."""
        if self._end is None and self._has_said(2, seconds):
            self._ended(*(self._said[1] if len(self._said) > 1 else (-9, "lost")))
        return self._end

    @property
    def pid(self) -> int:
        """The number of the child's process, 0 if there is none."""
        self._has_said(1, _END_SECONDS)
        return int(self._said[0][0]) if self._said else 0

    def ask_for_stacks(self) -> None:
        """Make the child write where its threads stand, if it answers (`platforms.answers_for_stacks`)."""
        self._send(STACKS)

    def interrupt(self) -> None:
        """Send the child Ctrl-C."""
        self._send(INTERRUPT)

    def close(self) -> None:
        """End the child and all that it has started, if they run; close no stream."""
        if self._end is None:
            with suppress(OSError):
                self._control.shutdown(socket.SHUT_RDWR)  # forks of this process may have the socket too
            self._ended(-9, "owner")

    def _has_said(self, count: int, seconds: float | None) -> bool:
        """Return whether the guard has written so many lines, or is gone; wait for it."""
        until = None if seconds is None else time.monotonic() + seconds
        while len(self._said) < count and self._end is None:
            self._control.settimeout(None if until is None else max(until - time.monotonic(), 1e-6))
            try:
                piece = self._control.recv(256)
            except (TimeoutError, BlockingIOError):
                return False
            except OSError:
                piece = b""
            if not piece:
                return True
            *lines, self._rest = (self._rest + piece).split(b"\n")
            self._said += map(json.loads, lines)
        return True

    def _ended(self, status: int, why: str) -> None:
        self._control.close()
        self._end = End(status, why, self.limits)
        self._reap(_END_SECONDS)

    def _send(self, what: bytes) -> None:
        with suppress(OSError):
            self._control.send(what)

    @abstractmethod
    def _reap(self, seconds: float) -> None:
        """Wait for the guard, which ends as soon as it has ended all others; kill it after ``seconds``."""


class Child(Guarded):
    """A command in a process of its own, which ends with this process and with it all that it has started.

    ``settings``: those of `subprocess.Popen`: stdin, stdout, stderr, env, cwd, text and pass_fds.
    """

    def __init__(self, command: Sequence[str], limits: Limits = _NO_LIMIT, **settings: Any) -> None:
        super().__init__(limits)
        with self._there as there:
            files = (there.fileno(), *settings.pop("pass_fds", ()))
            guarded = [sys.executable, "-I", "-S", _GUARD, str(there.fileno()), json.dumps(limits), *command]
            self._guard = start_group(guarded, pass_fds=files, **{"stdin": subprocess.DEVNULL, **settings})
        self.stdin: Any = self._guard.stdin
        self.stdout: Any = self._guard.stdout

    def _reap(self, seconds: float) -> None:
        try:
            self._guard.wait(seconds)
        except subprocess.TimeoutExpired:
            end_group(self._guard.pid)
            self._guard.wait()


class AnsweringChild(Child):
    """A command that takes and sends messages; its last argument is the descriptor of its end (`message_end`)."""

    def __init__(self, command: Sequence[str], limits: Limits = _NO_LIMIT, **settings: Any) -> None:
        from multiprocessing import Pipe

        self._messages, there = Pipe()
        with there:
            files = (there.fileno(), *settings.pop("pass_fds", ()))
            super().__init__([*command, str(there.fileno())], limits, pass_fds=files, **settings)

    def send(self, message: object) -> None:
        """Send a message. `Lost` if the child is gone."""
        try:
            self._messages.send_bytes(pickle.dumps(message))
        except OSError:
            raise Lost from None

    def receive(self, seconds: float) -> Any:
        """Return the next message. `TimedOut` if none comes in time, `Lost` if the child is gone."""
        until = time.monotonic() + seconds
        try:
            while not self._messages.poll(min(_LOOK_SECONDS, max(0.0, until - time.monotonic()))):
                if self.poll() is not None and not self._messages.poll(0):  # what the child left may keep its end open
                    raise Lost
                if time.monotonic() >= until:
                    raise TimedOut(seconds)
            return pickle.loads(self._messages.recv_bytes())
        except (EOFError, ConnectionError):
            raise Lost from None

    def close(self) -> None:
        """End the child and all that it has started, if they run."""
        super().close()
        self._messages.close()


class FunctionChild(Guarded):
    """A function in a process of its own, which ends with this process and with it all that it has started.

    The process is a fork of this one; on macOS, and if this process ``has_threads``, it is another Python that gets
    function and arguments as pickles.
    """

    def __init__(
        self, function: Callable[..., object], *arguments: Any, limits: Limits = _NO_LIMIT, has_threads: bool = False
    ) -> None:
        super().__init__(limits)
        context: Any = workers_context(has_threads=has_threads)
        with self._there as there:
            self._guard = context.Process(target=_guard, args=(there, limits, function, arguments), daemon=True)
            self._guard.start()

    def _reap(self, seconds: float) -> None:
        self._guard.join(seconds)
        self._guard.kill()
        self._guard.join()


class PipedChild(FunctionChild):
    """A `FunctionChild` whose function gets, behind its other arguments, the end of a pipe; ``pipe`` is the other one.

    ``pipe`` ends when the child does.
    """

    def __init__(self, function: Callable[..., object], *arguments: Any, **how: Any) -> None:
        from multiprocessing import Pipe

        self.pipe, there = Pipe()
        with there:
            super().__init__(function, *arguments, there, **how)

    def close(self) -> None:
        """End the child and all that it has started, if they run; close the pipe."""
        super().close()
        self.pipe.close()


def _guard(control: socket.socket, limits: Limits, function: Callable[..., object], arguments: tuple[Any, ...]) -> None:
    """Run a function under guard, in the process that guards it."""
    for each in list(_controls):  # those of the owner, in a fork: the guards of other children wait for their end
        each.close()
    keep_and_report(control.fileno(), limits, lambda: function(*arguments))


@dataclass(frozen=True)
class Output:
    """The end of a command, and what it wrote."""

    end: End
    stdout: str
    stderr: str


def output_of(command: Sequence[str], seconds: float | None = None, **settings: Any) -> Output:
    """Run a command, and return its end and its output. `TimedOut`, with its stacks, if it has not ended in time.

    ``settings``: as of `Child`; with a ``stdout`` of the caller's the output has none.
    """
    return outputs_of([command], seconds, **settings)[0]


def outputs_of(commands: Sequence[Sequence[str]], seconds: float | None = None, **settings: Any) -> list[Output]:
    """Run commands side by side; as `output_of`. All have ended when this does, whatever ends it."""
    until = None if seconds is None else time.monotonic() + seconds
    with ExitStack() as stack:
        running = []
        for each in commands:
            said, log = (stack.enter_context(log_file()) for _ in range(2))
            child = Child(each, **{"stdout": said, "stderr": log, **settings})
            stack.callback(child.close)
            running.append((child, said, log))
        ends = [_in_time(child, log, until, seconds) for child, _, log in running]
        return [Output(end, *map(text_of, files)) for end, (_, *files) in zip(ends, running, strict=True)]


def _in_time(child: Child, log: IO[str], until: float | None, seconds: float | None) -> End:
    """Return the end of a child; `TimedOut` if there is none in time."""
    end = child.wait(None if until is None else until - time.monotonic())
    if end is None:
        child.ask_for_stacks()
        time.sleep(_DUMP_SECONDS)
        raise TimedOut(seconds or 0.0, text_of(log))
    return end


def log_file() -> IO[str]:
    """Return a file without a name for what a child writes."""
    return tempfile.TemporaryFile("w+", errors="replace")


def text_of(file: IO[str]) -> str:
    """Return the output of a child in a `log_file` so far, without the space around it."""
    file.seek(0)
    return file.read().strip()
