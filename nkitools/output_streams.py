"""Text on stdout and stderr, which never breaks off what writes it: a closed pipe, a full disk, an ASCII terminal."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

CANNOT_WRITE = 2  # exit code of a command whose output is lost, and not for a reader that wants no more


class _Lasting(io.FileIO):
    """A file descriptor for writing: from the first error on, what is written goes nowhere."""

    error: OSError | None = None

    def write(self, data: Any, /) -> int:
        """Write what the system takes; all of it is said to be written where the system refuses."""
        if self.error is None:
            try:
                return super().write(data)
            except BlockingIOError:
                raise
            except OSError as error:
                self.error = error
        return memoryview(data).nbytes


@contextmanager
def lasting_streams() -> Iterator[None]:
    """Let stdout and stderr take every text until the end of a command.

    What their encoding lacks is written as an escape. A reader that has gone (``| head``) is no error. For any other
    one a line on stderr names the cause, and the exit code of a command that ends well is `CANNOT_WRITE`.
    """
    _open_missing()
    raw = {name: _replaced(name) for name in ("stdout", "stderr")}
    try:
        yield
    except SystemExit as ending:
        if _is_lost(raw["stdout"]) and not ending.code:
            raise SystemExit(CANNOT_WRITE) from None
        raise
    finally:
        with suppress(ValueError):  # closed by a script
            sys.stderr.flush()
    if _is_lost(raw["stdout"]):
        raise SystemExit(CANNOT_WRITE)


def write_line(text: str, file: TextIO | None) -> None:
    """Write a line at once; where the stream has no room or no reader for it, the line is left out."""
    if file is None:
        return
    try:
        print(text, file=file, flush=True)
    except UnicodeEncodeError:
        encoding = file.encoding or "ascii"
        write_line(text.encode(encoding, "backslashreplace").decode(encoding), file)
    except OSError:
        return


def _is_lost(stdout: _Lasting | None) -> bool:
    """Return whether output has found no room, and say so; a reader that has gone wanted no more."""
    with suppress(ValueError):  # closed by a script
        sys.stdout.flush()
    if stdout is None or stdout.error is None or stdout.error.errno == errno.EPIPE:
        return False
    print(f"nkitools: standard output cannot be written: {stdout.error.strerror}", file=sys.stderr)
    return True


def _open_missing() -> None:
    """Give nothing a stream that the shell has closed (``>&-``): the next file to be opened would take its place."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


def _replaced(name: str) -> _Lasting | None:
    """Replace a stream of `sys` by one that takes every text; None for a stream that is no file of this process."""
    before = getattr(sys, name)
    descriptor = {"stdout": 1, "stderr": 2}[name]
    if before is not getattr(sys, f"__{name}__"):
        return None  # a test's, or that of a notebook
    raw = _Lasting(descriptor, "wb", closefd=False)
    vars(raw)["name"] = f"<{name}>"
    if before is None:  # closed by the shell
        after = io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", "backslashreplace")
    else:
        before.flush()
        keeps = before.errors == "surrogateescape" and before.encoding == "utf-8"  # names of files that are no text
        after = io.TextIOWrapper(
            raw if before.write_through else io.BufferedWriter(raw),  # type: ignore[arg-type]
            before.encoding,
            before.errors if keeps else "backslashreplace",
            line_buffering=before.line_buffering,
            write_through=before.write_through,
        )
    setattr(sys, name, after)
    setattr(sys, f"__{name}__", after)
    return raw
