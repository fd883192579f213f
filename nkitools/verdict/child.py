"""A process of its own for an object whose methods are asked by name: a kernel that hangs ends no verdict."""

from __future__ import annotations

import os
import sys
import traceback
import weakref
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any

from nkitools.facts.options import with_options
from nkitools.kernel_file import BadRequest
from nkitools.processes import FunctionChild, Limits

_END_SECONDS = 5.0  # that a child may take to end after its pipe
_pipes: weakref.WeakSet[Connection] = weakref.WeakSet()


class Gone(Exception):
    """A child has not answered: it took too long, or its process has ended. ``is_time``: it took too long."""

    def __init__(self, why: str, *, is_time: bool = False) -> None:
        super().__init__(why)
        self.is_time = is_time


class Raised(Exception):
    """A method of the object has raised an error of its own; the text is that error's."""


class Answerer:
    """An object that ``make`` makes in a process of its own, at the first question and after each end of the process.

    ``is_here``: no other process can have the object; it is asked in this one, without limits.
    """

    def __init__(self, make: Callable[[], Any], memory: int, *, is_here: bool = False) -> None:
        self._make, self._limits, self.is_here = make, Limits(memory=memory), is_here
        self._object: Any = None
        self._child: FunctionChild | None = None
        self._pipe: Connection | None = None

    def start(self) -> None:
        """Start the process, which makes the object meanwhile."""
        if self.is_here or self._child is not None:
            return
        self._pipe, there = Pipe()
        with there:
            has_threads = "jax" in sys.modules  # JAX has threads, which a fork would leave behind
            serve = with_options(partial(_serve, self._make))
            self._child = FunctionChild(serve, there, limits=self._limits, has_threads=has_threads)
        _pipes.add(self._pipe)

    def ask(self, name: str, *args: Any, seconds: float) -> Any:
        """Return what a method of the object returns. `Gone` without an answer, `BadRequest` for what cannot be asked.

        `Raised` where the method raises another error.
        """
        if self.is_here:
            return self._asked_here(name, args)
        self.start()
        assert self._pipe is not None
        try:
            self._pipe.send((name, args))
            if not self._pipe.poll(max(seconds, 0.0)):
                self.close()
                raise Gone(f"it did not end within {seconds:.3g} s", is_time=True)
            kind, value = self._pipe.recv()
        except (EOFError, OSError):
            end = None if self._child is None else self._child.wait(_END_SECONDS)
            self.close()
            raise Gone("its process was lost" if end is None else end.words()) from None
        if kind == "answer":
            return value
        raise BadRequest(value) if kind == "request" else Raised(value)

    def _asked_here(self, name: str, args: tuple[Any, ...]) -> Any:
        try:
            self._object = self._object or self._make()
            return getattr(self._object, name)(*args)
        except BadRequest:
            raise
        except Exception as error:
            raise Raised(_said(error)) from error

    def close(self) -> None:
        """End the process."""
        if self._child is not None and self._pipe is not None:
            self._child.close()
            self._pipe.close()
        self._child = self._pipe = None


def _serve(make: Callable[[], Any], pipe: Connection) -> None:
    """Answer until the pipe ends, in a thread of its own: no frame and no argument of the caller's is around it."""
    sys.argv = sys.argv[:1]
    thread = Thread(target=copy_context().run, args=(_answer, make, pipe))
    thread.start()
    thread.join()


def _answer(make: Callable[[], Any], pipe: Connection) -> None:
    """Answer question after question until the pipe ends; what is printed goes nowhere."""
    for each in list(_pipes):  # those of this process's parent, in a fork: what others answer is not for this one
        each.close()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    found: Any = None
    while True:
        try:
            name, args = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            found = found or make()
            answer = ("answer", getattr(found, name)(*args))
        except BadRequest as error:
            answer = ("request", str(error))
        except Exception as error:
            answer = ("raised", _said(error))
        pipe.send(answer)


def _said(error: Exception) -> str:
    """Return an error with the last line that it passed."""
    (*_, place) = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__}: {error} ({place.filename}:{place.lineno})"
