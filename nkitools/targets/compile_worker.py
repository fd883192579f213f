"""Compile a kernel of a file by AWS's compiler, in a process of its own, and write what came of it.

Run as ``python -m nkitools.targets.compile_worker`` with one argument, the request as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nkitools.processes.requests import refused, requested


def compile_request(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of the compiled kernel that a request names, else its error and the author's line."""
    from nkitools.facts import options
    from nkitools.kernel_file import BadRequest, asked
    from nkitools.kernel_settings import settings_of
    from nkitools.targets.compilation import CompileFailed
    from nkitools.targets.neuron_compiler import NeuronCompiler
    from nkitools.targets.units import units_of

    device = NeuronCompiler(request.get("degree"))
    found = device.available()
    if not found.ok:
        raise BadRequest(found.reason)
    with options.override(**request["options"]), units_of([device], 0) as environment:
        os.environ.update(environment)  # before the file imports AWS's packages
        for name in device.hidden:
            os.environ.pop(name, None)
        degree = {"grid": request["degree"]} if request.get("degree") else {}
        with asked(request["file"], request["kernel"], request["inputs"], settings_of(request["settings"])) as this:
            try:
                made = device.compiled(this.kernel, this.args, {**this.kwargs, **degree})
            except CompileFailed as error:
                return {"compiled": None, "file": error.place[0], "line": error.place[1], "error": error.words}
        return {"compiled": asdict(made), "said": made.sentence(request["kernel"])}


def main() -> int:
    """Exit code 0 where the answer is written, 2 where the request was wrong, 1 where the author's code raises."""
    from nkitools.kernel_file import BadRequest, failure
    from nkitools.rules.finding import NotModelled
    from nkitools.targets.target import OtherDegree

    request = requested()
    try:
        found = compile_request(request)
    except (BadRequest, NotModelled, OtherDegree) as error:
        return refused(error)
    except Exception as error:
        said = failure(error)
        if not said:
            raise
        return refused(said, 1)
    Path(request["save"]).write_text(json.dumps(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
