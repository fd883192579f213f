"""The codes of AWS's compiler and runtime in the failure of a hardware test, explained below it."""

from __future__ import annotations

import pytest


def explained(report: pytest.TestReport) -> list[tuple[str, str]]:
    """Return report sections with the meaning of each code in a failure, and the known faults of the installed
    versions.
    """
    from nkitools.facts.known_faults import codes_in, faults_of_versions
    from nkitools.targets.neuron import NeuronDevice
    from nkitools.targets.packages import version_of

    log = "\n".join([report.longreprtext, *(text for _, text in report.sections)])
    lines = [code.sentence() for code in codes_in(log)]
    if lines:
        for fault, here in faults_of_versions(NeuronDevice().chip(), version_of):
            if fault.kind == "support":
                lines.append(f"{fault.package} {here}: {fault.meaning} ({fault.source})")
    return [("What AWS's codes mean (nkitools explain)", "\n".join(lines))] if lines else []
