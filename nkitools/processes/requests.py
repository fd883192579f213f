"""The side of a command that answers: one request, JSON in its first argument, or messages over a descriptor."""

from __future__ import annotations

import faulthandler
import json
import os
import sys
from multiprocessing.connection import Connection
from typing import Any

from nkitools.platforms import answers_for_stacks


def requested() -> dict[str, Any]:
    """Return the request of this process, which shows from now on where it stands when its owner asks for that."""
    faulthandler.enable()
    answers_for_stacks()
    request: dict[str, Any] = json.loads(sys.argv[1])
    return request


def refused(error: object, status: int = 2) -> int:
    """Print why a request cannot be answered, and return the exit status that says so: 2 for a wrong request."""
    print(error, file=sys.stderr)
    return status


def message_end() -> Connection:
    """Return the end of an `AnsweringChild`'s messages; no program that this process starts has it."""
    number = int(sys.argv[-1])
    os.set_inheritable(number, False)
    return Connection(number)
