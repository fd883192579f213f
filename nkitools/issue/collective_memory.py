"""The classes of HBM that all_reduce and all_gather take under NKI 0.7: private or shared, and which on one core.

Kernel arguments are left out: a launch places them, in private or in shared HBM, and a kernel cannot choose.
"""

from __future__ import annotations

import os

from nkitools.chip.core import Core
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.version_notices import report_notice
from nkitools.chip.view_checks import describe
from nkitools.facts import versions
from nkitools.issue import guards
from nkitools.issue.plan import Check

ONE_COPY = "NKI_LNC1_SHARED_HBM"  # "1": results on one core may be in shared HBM, one copy for a pair of ranks


def check_hbm(check: Check, core: Core, srcs: list[NkiTensor], dsts: list[NkiTensor]) -> None:
    """NK201: a list of tensors must be all private or all shared; on one core private (``dsts`` unless `ONE_COPY` is
    set).

    It is NK618 if no NKI version is named, as older versions have no such limit.
    """
    one_core = len(core.team) < 2
    for role, what, tensors, is_shared_allowed in (
        ("srcs", "source", srcs, not one_core),
        ("dsts", "destination", dsts, not one_core or os.environ.get(ONE_COPY) == "1"),
    ):
        own = [
            (f"{role}[{number}]", each)
            for number, each in enumerate(tensors)
            if each.buffer in guards.HBM and each.storage.id not in core.input_ids
        ]
        shared = [each for each in own if each[1].buffer is MemoryRegion.shared_hbm]
        if shared and not is_shared_allowed:
            _leave(check, f"a {what} in shared HBM on one core", *shared[0])
        elif shared and len(shared) < len(own):
            _leave(check, "a list of private and shared HBM", *shared[0])


def _leave(check: Check, form: str, role: str, tensor: NkiTensor) -> None:
    """Report a form that the newest NKI version has removed: NK201, or NK618 if no version is named."""
    row = versions.by_full_name()[f"nki.collectives.{form}"]
    if not row.is_in(check.language):
        message = f"`{role}` is {describe(tensor)}; {row.shown} {row.absence(check.language)}"
        check.fail("NK201", message, tensor, remedy=row.instead)
    report_notice(versions.notice(row, check.language))
