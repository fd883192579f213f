"""A broken rule speaks to its reader: one line for reports, a few lines for errors, and the right exception."""

from __future__ import annotations

import pytest

from nkitools.rules.catalogue import RULES
from nkitools.rules.finding import REPORTER, Finding, KernelError, NotModelled, error_of, not_modelled, refuse, report


def _finding(rule: str, **details: object) -> Finding:
    fields: dict[str, object] = {
        "rule": rule,
        "slug": RULES[rule].slug,
        "severity": RULES[rule].severity,
        "message": "it broke",
        "file": "giou.py",
        "line": 41,
        "remedy": "Mend it.",
    }
    return Finding(**{**fields, **details})  # type: ignore[arg-type]


def test_a_finding_is_one_line_of_text() -> None:
    """`path:line:col: NK101 message`, without the column where it is not known."""
    assert _finding("NK101", column=9).text() == "giou.py:41:9: NK101 it broke"
    assert _finding("NK101").text() == "giou.py:41: NK101 it broke"


def test_an_error_says_what_to_do_and_where() -> None:
    """The message, the remedy, then the place with its loop counters and program."""
    finding = _finding("NK101", loops={"m": 3, "n": 0}, program=(1,))
    assert str(KernelError(finding)) == (
        "it broke (NK101 partition-limit).\n  Mend it.\n  at giou.py:41, loop m=3, n=0, program 1"
    )


def test_a_program_of_zeros_is_not_mentioned() -> None:
    """Most kernels have one program; its id says nothing."""
    assert _finding("NK101", program=(0, 0)).sentence().endswith("  at giou.py:41")


@pytest.mark.parametrize(
    ("rule", "builtin"), [("NK101", AssertionError), ("NK402", IndexError), ("NK609", TypeError), ("NK602", ValueError)]
)
def test_an_error_is_also_the_builtin_that_aws_documents(rule: str, builtin: type[Exception]) -> None:
    """An author who catches AWS's exception catches ours, and ours carries the finding."""
    finding = _finding(rule)
    with pytest.raises(builtin) as raised:
        raise error_of(finding)
    assert isinstance(raised.value, KernelError)
    assert raised.value.finding is finding


def test_an_error_without_a_documented_builtin_is_a_kernel_error_only() -> None:
    """NK401 has no exception at AWS."""
    assert type(error_of(_finding("NK401"))) is KernelError


def test_what_is_not_modelled_has_its_own_class() -> None:
    """NK607 is NotModelled wherever it comes from."""
    assert type(error_of(_finding("NK607"))) is NotModelled
    with pytest.raises(NotModelled, match="is not modelled"):
        not_modelled("nl.tan is not modelled")


def test_outside_of_a_run_an_error_is_raised_and_a_warning_is_not() -> None:
    """Nobody collects there; a warning has nowhere to go."""
    assert REPORTER.get() is None
    with pytest.raises(KernelError):
        report("NK401", "it broke")
    report("NK612", "it is deprecated")
    with pytest.raises(KernelError):
        refuse("NK612", "it cannot be computed")


def test_a_remedy_of_its_own_takes_the_place_of_the_rules() -> None:
    """The one who reports may know better what to do here."""
    with pytest.raises(KernelError) as general:
        report("NK401", "it broke")
    with pytest.raises(KernelError) as special:
        report("NK401", "it broke", remedy="Call nisa.memset first.")
    assert general.value.finding.remedy == RULES["NK401"].remedy
    assert special.value.finding.remedy == "Call nisa.memset first."


@pytest.mark.parametrize(("severity", "shown"), [("error", ""), ("warning", " (warning)"), ("hint", " (hint)")])
def test_a_line_says_its_severity_unless_it_is_an_error(severity: str, shown: str) -> None:
    """Patterns for errors still match; a warning or a hint cannot be taken for one."""
    found = Finding.of("NK703", "slow", ("k.py", 3, "kernel"), severity=severity, column=5)
    assert found.text().endswith(f"k.py:3:5: NK703{shown} slow")
