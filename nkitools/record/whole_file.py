"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import shutil
import uuid
from contextlib import suppress
from pathlib import Path


def write_whole(path: str | os.PathLike[str], content: str | bytes | memoryview) -> None:
    """Write a file under a temporary name beside ``path``, then rename it to ``path``; a text as UTF-8.

    A failure, such as a full disk, leaves the earlier file or none. OSError if the file cannot be written.
    """
    data = content.encode("utf-8", errors="replace") if isinstance(content, str) else content
    path = Path(os.path.realpath(path))
    beside = path.with_name(f".{path.name[:100]}-{uuid.uuid4().hex}")
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)  # a pipe, a device
            return
        with open(beside, "xb") as file:
            file.write(data)
        if path.exists():
            shutil.copymode(path, beside)
        os.replace(beside, path)
    except BaseException as error:
        with suppress(OSError):
            beside.unlink()
        if isinstance(error, OSError):
            error.filename = str(path)
            del error.filename2  # a name that is None would be shown
        raise
