"""nkitools: a simulator-first test and debugging toolkit for accelerator kernels."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from nkitools.dialects.stand_in import install_stand_in, remove_stand_in

if TYPE_CHECKING:
    from nkitools import mx, strategies
    from nkitools.expect import expect_finding
    from nkitools.launch.simulate import simulate
    from nkitools.precision.split import precision_split
    from nkitools.record.allowed import allow_findings
    from nkitools.record.collect import collect_runs
    from nkitools.record.prints import Print
    from nkitools.record.run import Run
    from nkitools.rules.finding import Finding, KernelError, NotModelled

__version__ = "0.1.0"

# Imported when first asked for, so that `import nkitools` stays light.
_LAZY = {
    "Finding": "nkitools.rules.finding",
    "KernelError": "nkitools.rules.finding",
    "NotModelled": "nkitools.rules.finding",
    "Print": "nkitools.record.prints",
    "Run": "nkitools.record.run",
    "allow_findings": "nkitools.record.allowed",
    "collect_runs": "nkitools.record.collect",
    "expect_finding": "nkitools.expect",
    "precision_split": "nkitools.precision.split",
    "simulate": "nkitools.launch.simulate",
}

__all__ = [
    "Finding",
    "KernelError",
    "NotModelled",
    "Print",
    "Run",
    "__version__",
    "allow_findings",
    "collect_runs",
    "expect_finding",
    "install_stand_in",
    "mx",
    "precision_split",
    "remove_stand_in",
    "simulate",
    "strategies",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    if name in ("mx", "strategies"):
        return import_module(f"nkitools.{name}")
    if name in _LAZY:
        value = getattr(import_module(_LAZY[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'nkitools' has no attribute {name!r}")
