"""AWS's simulator as a peer: of each recorded kernel this simulator says what the chip says, else what AWS's says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkitools
from tests.targets import recorded_kernels, recorded_views
from tests.targets.recorded_claims import CLAIMS, REFUSED, RIGHT, WRONG, Claim

assert recorded_kernels
assert recorded_views
PAGE = Path(__file__).parents[2] / "docs/explanation/fidelity.md"


def verdict(claim: Claim) -> str:
    """What this simulator says of a kernel, for the version and the chip of the records."""
    arguments = [each.copy() for each in claim.arguments]
    try:
        run = nkitools.simulate(claim.kernel, *arguments, nki_version="0.6", chip="trn2")
    except nkitools.KernelError as error:
        return REFUSED if claim.by in ("", error.finding.rule) else f"refused by {error.finding.rule}"
    except (TypeError, AttributeError):
        return REFUSED
    outputs: Any = np.asarray(run.outputs)
    if claim.reference is None or np.isnan(outputs).all():
        return "NaN" if claim.reference else "runs"
    expected = claim.reference(*claim.arguments)
    return RIGHT if np.allclose(outputs.reshape(expected.shape), expected, 1e-4, 1e-4) else WRONG


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_the_verdict_is_that_of_the_table(claim: Claim) -> None:
    """The deciding one, unless the table says that it is not reached yet."""
    assert verdict(claim) == (claim.ours or claim.decided)


def test_what_is_not_reached_is_said_of_differences_only() -> None:
    """Our own verdict stands in the table only where it is not the deciding one."""
    assert [claim.name for claim in CLAIMS if claim.ours == claim.decided] == []
    assert len({claim.name for claim in CLAIMS}) == len(CLAIMS)


def figures() -> str:
    """The sentence of the page."""
    of_aws = [claim for claim in CLAIMS if claim.aws]
    of_chip = [claim for claim in CLAIMS if claim.chip]
    agree = [claim for claim in CLAIMS if not claim.ours]
    both = [claim for claim in of_aws if claim.chip and claim.chip != claim.aws]
    with_aws = sum((claim.ours or claim.decided) == claim.aws for claim in of_aws)
    with_chip = sum(not claim.ours for claim in of_chip)
    return (
        f"Of {len(of_aws)} small kernels nkitools says what AWS's simulator says in {with_aws}, of {len(of_chip)} what "
        f"the chip or its compiler says in {with_chip}; the two differ in {len(both)}, where the chip decides. Of all "
        f"{len(CLAIMS)}, {len(agree)} have the deciding verdict."
    )


def test_the_page_has_the_figures() -> None:
    """The sentence is that of the table."""
    assert figures() in " ".join(PAGE.read_text().split())
