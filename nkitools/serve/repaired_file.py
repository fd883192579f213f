"""A kernel of a file, repaired: one edit after which its outputs are the reference's, as plain data."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nkitools.kernel_settings import without_settings
from nkitools.serve.simulated_file import answered
from nkitools.targets.builtin import is_jax_function

if TYPE_CHECKING:
    from nkitools.kernel_file import Asked
    from nkitools.record.run import Run

Plain = dict[str, Any]
_SHARE = 0.8  # of the seconds of a call: the rest is for the file and the kernel as it is


def repaired(request: Plain) -> Plain:
    """Search for one edit of a kernel of a file after which its outputs are those of the function ``against``.

    Without ``against`` the reference is the file's own ``reference``. Returns `Answer.as_plain`.
    """
    began = time.monotonic()

    def look(_: Run, this: Asked) -> Plain:
        named = request.get("against")
        reference = this.file.function(named) if named else this.file.reference
        if reference is None:
            return {"error": f"{this.file.path} has no `reference`; name a function of it (against)"}
        reference = without_settings(reference, request.get("settings") or {})
        return _searched(this, reference, began + _SHARE * float(request["seconds"]), request.get("chip"))

    return answered(request, look)


def _searched(this: Asked, reference: Callable[..., Any], end: float, chip: str | None) -> Plain:
    if is_jax_function(this.kernel):
        from nkitools.repair.jax_function import answer_of_jax

        return answer_of_jax(this.kernel, (this.args, this.kwargs), reference, end).as_plain()
    from nkitools.repair.answers import answer_of
    from nkitools.why.targets import Expected
    from nkitools.why.traced_calls import Call

    call = Call(this.kernel, this.args, this.kwargs, chip=chip or None)
    return answer_of(call, Expected(reference, this.file.expect, this.kwargs), end - time.monotonic()).as_plain()
