"""Errors that carry findings: their classes, and their journeys between processes."""

from __future__ import annotations

import copy
import pickle
import sys

import pytest

from nkitools.dialects.absent import NotModelledAttribute, NotModelledImport, RemovedAttribute, RemovedImport
from nkitools.rules import finding as findings
from nkitools.rules.catalogue import RULES
from nkitools.rules.finding import Finding, KernelError, NotModelled, error_class, error_of, report

FINDING = Finding(
    "NK101", "partition-limit", "error", "it broke", "giou.py", 41, "Mend it.", 9, (1,), {"m": 3}, function="giou"
)
CLASSES = [
    KernelError,
    NotModelled,
    findings.KernelAssertionError,
    findings.KernelIndexError,
    findings.KernelTypeError,
    findings.KernelValueError,
    NotModelledAttribute,
    NotModelledImport,
    RemovedAttribute,
    RemovedImport,
]


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_errors_are_pickled(kind: type[KernelError], protocol: int) -> None:
    """pytest-xdist and multiprocessing send exceptions: class, text, finding, notes and attributes arrive."""
    error = kind(FINDING)
    error.add_note("a note")
    error.mine = "more"  # type: ignore[attr-defined]
    arrived = pickle.loads(pickle.dumps(error, protocol))
    assert type(arrived) is kind
    assert str(arrived) == str(error)
    assert arrived.finding == FINDING
    assert arrived.__notes__ == ["a note"]
    assert arrived.mine == "more"


@pytest.mark.parametrize("kind", CLASSES)
def test_errors_are_copied(kind: type[KernelError]) -> None:
    """As pickled."""
    assert copy.deepcopy(kind(FINDING)).finding == FINDING


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_the_class_of_each_rule_can_be_imported(rule: object) -> None:
    """By the module and name that it says it has; NK607 is NotModelled, and what AWS documents is a base."""
    kind = error_class(rule)  # type: ignore[arg-type]
    assert getattr(sys.modules[kind.__module__], kind.__qualname__) is kind
    assert issubclass(kind, KernelError)


def test_findings_are_values() -> None:
    """Equal ones hash alike, so that they can be counted and folded."""
    twin = Finding(**{**vars(FINDING), "loops": dict(FINDING.loops)})
    assert twin == FINDING
    assert len({twin, FINDING}) == 1
    assert error_of(twin).finding is twin


def test_an_unknown_name_leaves_no_mark() -> None:
    """Messages leave the names of tensors to a run's reporter; outside of a run there is none."""
    with pytest.raises(KernelError) as raised:
        report("NK402", "index 9 of tensor \x0012\x00 (SBUF, float32 [8, 4])")
    assert raised.value.finding.message == "index 9 of tensor (SBUF, float32 [8, 4])"
    assert raised.value.finding.file == __file__
