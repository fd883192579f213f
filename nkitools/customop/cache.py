"""The cache of built libraries: under the user's cache directory, by the content that they were built from.

Every library there is complete: it is built beside its place and moved there. A lock keeps two processes from building
the same library at once; the lock is the operating system's, so it goes with the process that holds it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from nkitools.customop.errors import BuildError
from nkitools.facts.options import cache_directory
from nkitools.platforms import lock

_FULL = (errno.ENOSPC, errno.EDQUOT)


def digest(parts: Iterable[str | bytes]) -> str:
    """Return a name for content: each part counts with its length, so that no two lists of parts run into one."""
    whole = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        whole.update(len(data).to_bytes(8, "little"))
        whole.update(data)
    return whole.hexdigest()[:32]


@contextmanager
def locked(name: str) -> Iterator[Path]:
    """Hold the lock of one thing in the cache; yields the directory that is its place."""
    root = cache_directory() / "customop"
    try:
        (root / "locks").mkdir(parents=True, exist_ok=True)
        handle = open(root / "locks" / name, "w")  # noqa: SIM115 - closed below, with the lock
    except OSError as error:
        raise BuildError(
            f"the cache {root} cannot be written ({error.strerror}); NKITOOLS_CACHE_DIR names another place"
        ) from error
    try:
        lock(handle)
        yield root / name
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise BuildError(f"nothing can be built in {root}: {os.strerror(error.errno).lower()}") from error
    finally:
        handle.close()


def forget_unused(root: Path, days: float = 30) -> None:
    """Remove what has not been used for long, leftovers of processes that were killed among it."""
    limit = time.time() - days * 86400
    for path in root.iterdir():
        with contextlib.suppress(OSError):  # another process may do the same
            if path.name != "locks" and path.stat().st_mtime < limit:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


@contextmanager
def being_built(place: Path) -> Iterator[Path]:
    """Provide a directory to build in, which becomes ``place`` where the block ends well, and is removed otherwise."""
    place.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".building-", dir=place.parent))
    try:
        yield scratch
        if place.exists():
            shutil.rmtree(place, ignore_errors=True)
        os.replace(scratch, place)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
