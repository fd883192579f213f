"""The shared_hbm tensors of a launch: every program has made the same ones (NK208)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from nkitools.chip.core import SharedHbm
from nkitools.record.record import Record
from nkitools.record.reporter import Reporter
from nkitools.rules.finding import report


def check_shared(shared: SharedHbm, programs: Sequence[tuple[int, ...]], record: Record, reporter: Reporter) -> None:
    """NK208, at its line, for a shared_hbm tensor that some programs have made and others have not.

    Nothing where an error has been found: a program may have ended early.
    """
    if len(programs) == 1:
        return
    made = [shared.sites.get(program, []) for program in programs]
    least = min(made, key=len)
    if all(len(each) == len(least) for each in made) or reporter.findings.has_error:
        return
    most = max(made, key=len)
    lacking = Counter(most) - Counter(least)
    site = next(each for each in most if each in lacking)
    makers = sum(len(each) > len(least) for each in made)
    with reporter.placed(record.sites[site]):
        report(
            "NK208",
            f"{makers} of {len(made)} programs create this shared_hbm tensor; it is one buffer of all programs, "
            "which every program has to create",
            remedy="Create it in every program, in front of any `if` on nl.program_id; memory of one program alone is "
            "nl.private_hbm.",
        )
