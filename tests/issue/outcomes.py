"""The outcome of a run as tests of practice look at it."""

from __future__ import annotations

from typing import Any

import pytest

import nkitools
from nkitools.rules.finding import Finding


def done(kernel: Any, *args: Any, **kwargs: Any) -> tuple[Any, list[Finding]]:
    """Return the outputs of a run and its findings, without the hints about speed and about what nothing reads."""
    run = nkitools.simulate(kernel, *args, **kwargs)
    return run.outputs, [each for each in run.findings if not each.rule.startswith(("NK7", "NK513"))]


def refused(kernel: Any, *args: Any) -> Finding:
    """Return the finding of a run that ends with an error."""
    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(kernel, *args)
    return caught.value.finding
