"""The side of a command that answers one request, and ends: the request is JSON in its first argument."""

from __future__ import annotations

import faulthandler
import json
import sys
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
