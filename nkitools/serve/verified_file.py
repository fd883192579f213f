"""The verdict on a kernel of a file, as plain data."""

from __future__ import annotations

from typing import Any

from nkitools.facts import options
from nkitools.kernel_file import BadRequest
from nkitools.serve.simulated_file import arguments_of
from nkitools.verdict.subject import OfFile
from nkitools.verdict.verify import Options, verdict_of

Plain = dict[str, Any]
_SHARE = 0.9  # of the seconds of a call: the rest is for the end of both processes


def verified(request: Plain) -> Plain:
    """Judge a kernel of a file by its `reference`, or by ``against``, a file and a name; see `Verdict.as_plain`.

    ``error`` says why the kernel could not be tried.
    """
    given = request.get("arguments")
    version = request.get("nki_version") or str(options.value("nki_version"))
    chip = request.get("chip")
    try:
        arguments = None if given is None else arguments_of(given)
        subject = OfFile(
            request["file"], request["kernel"], request.get("against"), None, arguments, request.get("settings") or {}
        )
        asked = Options(
            chips=(chip,) if chip else (),
            mutates=tuple(request.get("mutates") or ()),
            seconds=_SHARE * request["seconds"],
            **{name: request[name] for name in ("rtol", "atol", "max_traffic", "seed", "fail_fast")},
        )
        with options.override(nki_version=version):
            found = verdict_of(subject, asked, {})
    except (BadRequest, ValueError) as error:
        return {"error": str(error)}
    return {"error": found.stopped, **found.as_plain()}
