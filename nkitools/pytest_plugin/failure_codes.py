"""The codes of AWS's compiler and runtime in the failure of a hardware test, explained below it."""

from __future__ import annotations

import pytest


def explained(report: pytest.TestReport) -> list[tuple[str, str]]:
    """Return a section with the meaning of each code in a failure, and what the installed versions are known for."""
    from nkitools.targets.known_bugs import known_bugs
    from nkitools.targets.neuron import NeuronDevice
    from nkitools.targets.neuron_codes import codes_in

    log = "\n".join([report.longreprtext, *(text for _, text in report.sections)])
    lines = [code.sentence() for code in codes_in(log)]
    if lines:
        lines += [bug.sentence() for bug in known_bugs(NeuronDevice().chip())]
    return [("What AWS's codes mean (nkitools explain)", "\n".join(lines))] if lines else []
