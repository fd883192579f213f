"""An object in a process of its own, whose methods are called by name: a kernel that hangs does not end the verdict."""

from __future__ import annotations

import os
import sys
import traceback
import weakref
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any

from nkitools.facts.options import with_options
from nkitools.kernel_file import BadRequest
from nkitools.processes import Limits, PipedChild

_END_SECONDS = 5.0  # in which a child must end once its pipe is closed
_pipes: weakref.WeakSet[Connection] = weakref.WeakSet()


class Gone(Exception):
    """A child process has not answered: it took too long (``is_time``), or it has ended."""

    def __init__(self, why: str, *, is_time: bool = False) -> None:
        super().__init__(why)
        self.is_time = is_time


class Raised(Exception):
    """The object has raised an error of its own; the text is that error's."""


class Answerer:
    """An object that ``make`` makes in a process of its own, again after each end of the process.

    ``is_here``: it is made in this process, without limits, if no other one can load it.
    """

    def __init__(self, make: Callable[[], Any], memory: int, *, is_here: bool = False) -> None:
        self._make, self._limits, self.is_here = make, Limits(memory=memory), is_here
        self._object: Any = None
        self._child: PipedChild | None = None

    def start(self) -> None:
        """Start the process, which makes the object at the first question."""
        if self.is_here or self._child is not None:
            return
        has_threads = "jax" in sys.modules  # JAX has threads, which a fork would leave behind
        serve = with_options(partial(_serve, self._make))
        self._child = PipedChild(serve, limits=self._limits, has_threads=has_threads)
        _pipes.add(self._child.pipe)

    def ask(self, name: str, *args: Any, seconds: float) -> Any:
        """Call a method of the object, and return its result. Raises `Gone` if no answer comes.

        `BadRequest` if the object raises that; `Raised` for its other errors.
        """
        if self.is_here:
            return self._asked_here(name, args)
        self.start()
        assert self._child is not None
        child = self._child
        try:
            child.pipe.send((name, args))
            if not child.pipe.poll(max(seconds, 0.0)):
                self.close()
                raise Gone(f"it did not end within {seconds:.3g} s", is_time=True)
            kind, value = child.pipe.recv()
        except (EOFError, OSError):
            end = child.wait(_END_SECONDS)
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
        if self._child is not None:
            self._child.close()
        self._child = None


def _serve(make: Callable[[], Any], pipe: Connection) -> None:
    """Answer until the pipe ends, in a thread of its own: no frame and no argument of the caller's is around it."""
    sys.argv = sys.argv[:1]
    thread = Thread(target=copy_context().run, args=(_answer, make, pipe))
    thread.start()
    thread.join()


def _answer(make: Callable[[], Any], pipe: Connection) -> None:
    """Call the object's method for each question until the pipe ends, and drop what is printed."""
    for each in list(_pipes):  # a fork has its parent's pipes to other processes, which it must not hold open
        each.close()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    answering: Any = None
    while True:
        try:
            name, args = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            answering = answering or make()
            answer = ("answer", getattr(answering, name)(*args))
        except BadRequest as error:
            answer = ("request", str(error))
        except Exception as error:
            answer = ("raised", _said(error))
        pipe.send(answer)


def _said(error: Exception) -> str:
    """Return an error as text, with the file and line that raised it."""
    (*_, place) = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__}: {error} ({place.filename}:{place.lineno})"
