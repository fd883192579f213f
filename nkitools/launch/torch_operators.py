"""Functions that AWS's ``nki_op`` has made operators of torch: what they call of kernels is one run."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nkitools.facts import options
from nkitools.record.run_listeners import collect_runs

if TYPE_CHECKING:
    from nkitools.chip.argument_types import Kernel
    from nkitools.record.run import Run

_OPTIONS = ("chip", "rules", "nki_version", "sum_order")  # keywords of a call that are not the operator's


def is_nki_op(kernel: Kernel) -> bool:
    """Return whether ``kernel`` is a custom operator of torch's; nothing is one where torch has not been imported."""
    torch = sys.modules.get("torch")
    made = getattr(getattr(torch, "library", None), "CustomOpDef", None)
    return made is not None and isinstance(kernel, made)


def run_operator(operator: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Run:
    """Call an operator and return the run of its first kernel, with the outputs of the operator.

    Raises what the kernels raise; ValueError where no kernel has run.
    """
    __tracebackhide__ = True
    own = {name: value for name, value in kwargs.items() if name not in _OPTIONS}
    said = {name: kwargs[name] for name in _OPTIONS if kwargs.get(name) is not None}
    with options.override(**said), collect_runs() as runs:
        outputs = operator(*args, **own)
    if not runs:
        raise ValueError(f"operator {operator.__name__} has called no kernel of nki")
    runs[0].outputs = outputs
    return runs[0]
