"""Whether a kernel's results are those of its reference, on given arguments."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import nkitools
from benchmarks.wrong_values.cases import Case, Settings
from nkitools.kernel_file import Asked, asked
from nkitools.serve.child_process import Ended, call
from nkitools.targets.builtin import is_jax_function
from nkitools.targets.imports import stand_in

Plain = dict[str, Any]
_SECONDS = 120.0


def judged(request: Plain) -> Plain:
    """Run the kernel of ``path`` for each of ``settings``; return ``rows``: whether it ``agrees``, and its ``errors``.

    ``rtol``, ``atol``; ``thorough``: a Pallas kernel goes through all modes of its check, not through one.
    """
    rows = []
    for settings in request["settings"]:
        with stand_in("always"), asked(request["path"], "kernel", settings=settings) as this:
            rows.append(_row(this, request))
    return {"rows": rows}


def _row(this: Asked, request: Plain) -> Plain:
    args = tuple(copy.deepcopy(each) for each in this.args)
    if is_jax_function(this.kernel):
        modes = None if request.get("thorough") else ("interpret",)
        run = nkitools.pallas.check(this.kernel, *args, modes=modes)
    else:
        run = nkitools.simulate(this.kernel, *args, rules="report")
    wanted = _arrays(this.file.reference(*(copy.deepcopy(each) for each in this.args)))
    found = _arrays(run.outputs)
    agrees = len(wanted) == len(found) and all(
        one.shape == other.shape and np.allclose(one, other, rtol=request["rtol"], atol=request["atol"])
        for one, other in zip(found, wanted, strict=True)
    )
    return {"agrees": agrees, "errors": [each.rule for each in run.findings if each.severity == "error"]}


def _arrays(results: Any) -> list[Any]:
    """Return what a kernel or a reference returns as arrays of wide numbers."""
    every = results if isinstance(results, (tuple, list)) else [results]
    return [np.asarray(each).astype(np.float64) for each in every]


def is_right(case: Case, text: str, folder: Path, settings: Sequence[Settings] = ()) -> bool:
    """Return whether an edited text of a case gives the right results, by default on all arguments that are unseen."""
    path = folder / f"edited_{case.name}.py"
    path.write_text(text, encoding="utf-8")
    rtol, atol = case.constant("tolerance")
    request = {"path": str(path), "settings": list(settings or case.unseen), "rtol": rtol, "atol": atol}
    try:
        rows = call(judged, request, seconds=_SECONDS)["rows"]
    except Ended:
        return False
    return all(each["agrees"] and not each["errors"] for each in rows)
