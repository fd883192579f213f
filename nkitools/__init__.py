"""nkitools: a simulator-first test and debugging toolkit for accelerator kernels."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from nkitools.dialects.import_hint import explain_failing_imports
from nkitools.dialects.stand_in import install_stand_in, remove_stand_in
from nkitools.facts import __version__
from nkitools.platforms import is_own_command, refusal
from nkitools.record.offers import offer

if TYPE_CHECKING:
    from nkitools import customop, mx, pallas, strategies
    from nkitools.expect import expect_finding
    from nkitools.launch.simulate import simulate
    from nkitools.precision.split import precision_split
    from nkitools.record.allowed_rules import allow_findings
    from nkitools.record.prints.device_print import Print
    from nkitools.record.prints.print_listeners import capture_prints
    from nkitools.record.prints.print_sequence import Prints
    from nkitools.record.run import Run, load_run
    from nkitools.record.run_listeners import collect_runs
    from nkitools.record.saved.loading import SavedRunError
    from nkitools.record.watch.probes import WatchWarning
    from nkitools.record.watch.watching import watching
    from nkitools.report.page.document import page, write_page
    from nkitools.report.perfetto import save_timeline
    from nkitools.report.run_diff import compare_runs
    from nkitools.rules.finding import Finding, KernelError, NotModelled
    from nkitools.sweeps.sweep import sweep
    from nkitools.sweeps.tune import tune
    from nkitools.verdict.verify import verify

if refusal() and not is_own_command():  # the command says it without a traceback
    raise ImportError(refusal())

# Imported when first asked for, so that `import nkitools` stays light.
_LAZY = {
    "Finding": "nkitools.rules.finding",
    "KernelError": "nkitools.rules.finding",
    "NotModelled": "nkitools.rules.finding",
    "Print": "nkitools.record.prints.device_print",
    "Prints": "nkitools.record.prints.print_sequence",
    "Run": "nkitools.record.run",
    "WatchWarning": "nkitools.record.watch.probes",
    "allow_findings": "nkitools.record.allowed_rules",
    "capture_prints": "nkitools.record.prints.print_listeners",
    "collect_runs": "nkitools.record.run_listeners",
    "expect_finding": "nkitools.expect",
    "SavedRunError": "nkitools.record.saved.loading",
    "compare_runs": "nkitools.report.run_diff",
    "load_run": "nkitools.record.run",
    "page": "nkitools.report.page.document",
    "save_timeline": "nkitools.report.perfetto",
    "watching": "nkitools.record.watch.watching",
    "write_page": "nkitools.report.page.document",
    "precision_split": "nkitools.precision.split",
    "simulate": "nkitools.launch.simulate",
    "sweep": "nkitools.sweeps.sweep",
    "tune": "nkitools.sweeps.tune",
    "verify": "nkitools.verdict.verify",
}

__all__ = [
    "Finding", "KernelError", "NotModelled", "Print", "Prints", "Run", "SavedRunError", "WatchWarning", "__version__",
    "allow_findings", "capture_prints", "collect_runs", "compare_runs", "customop", "expect_finding",
    "install_stand_in", "load_run", "mx", "page", "pallas", "precision_split", "remove_stand_in", "save_timeline",
    "simulate", "strategies", "sweep", "tune", "verify", "watching", "write_page",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if not TYPE_CHECKING:  # a type checker sees the names above, and complains of any other

    def __getattr__(name: str) -> Any:
        if name in ("customop", "mx", "pallas", "strategies"):
            return import_module(f"nkitools.{name}")
        if name in _LAZY:
            value = getattr(import_module(_LAZY[name]), name)
            globals()[name] = value
            return value
        raise AttributeError(f"module 'nkitools' has no attribute {name!r}")


explain_failing_imports()
offer("estimate", lambda: import_module("nkitools.timing.estimate").estimate)
offer("latency", lambda: import_module("nkitools.timing.estimate").latency_of)
offer("estimate_text", lambda: import_module("nkitools.report.estimate_text").estimate_text)
offer("notebook_frame", lambda: import_module("nkitools.report.page.document").in_frame)
offer("slice", lambda: import_module("nkitools.why.element_slices").slice_of)
offer("tolerance", lambda: import_module("nkitools.precision.explained").explained_errors)


def load_ipython_extension(shell: Any) -> None:
    """Install the stand-in, as ``%load_ext nkitools`` in a notebook asks for; show prints and findings as tables."""
    from nkitools.report.notebook import attach

    install_stand_in()
    attach(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Remove the stand-in, as ``%unload_ext nkitools`` asks for."""
    from nkitools.report.notebook import detach

    remove_stand_in()
    detach(shell)
