"""The table of options: what decides, and what is said of a value that means nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from contextvars import ContextVar

import pytest

from nkitools.facts import options


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests speak of what decides, so they start where nothing does: the session itself may hold overrides."""
    monkeypatch.setattr(options, "_overrides", ContextVar("bare", default=None))
    for option in options.OPTIONS.values():
        monkeypatch.delenv(option.env, raising=False)


def test_the_default_holds_when_nothing_else_speaks() -> None:
    """Without an override or a variable every option has the default of its row."""
    assert {name: options.value(name) for name in options.OPTIONS} == {
        "chip": None,
        "nki_version": "auto",
        "rules": "error",
        "precision": None,
        "sum_order": "fast",
        "simulator": "builtin",
        "report": None,
        "report_pages": "wrong",
        "report_limit": "200",
        "require_hw": False,
        "require_run": False,
        "prints": False,
        "findings": "all",
        "print_limit": "64",
        "page_limit": "9",
        "memory": None,
        "watch": None,
        "pallas_modes": "interpret,tpu_interpret,lower,aot",
        "pallas_chips": "v5e",
        "schedule_seed": None,
        "replay": None,
        "replay_threads": None,
        "target": None,
        "timeout": "600",
        "isolate": "process",
        "compare": None,
        "device_time": "on",
        "why_budget": "5",
        "marks": False,
        "stand_in": "auto",
        "why": "on",
    }


def test_the_environment_beats_the_default_and_an_override_beats_both(monkeypatch: pytest.MonkeyPatch) -> None:
    """override > environment > default, and after the override the environment speaks again."""
    monkeypatch.setenv("NKITOOLS_RULES", "report")
    assert options.value("rules") == "report"
    with options.override(rules="off"):
        assert options.value("rules") == "off"
    assert options.value("rules") == "report"


def _fail_under(*, rules: str, expected: tuple[str, str]) -> None:
    with suppress(RuntimeError), options.override(rules=rules):
        assert (options.value("chip"), options.value("rules")) == expected
        raise RuntimeError


def test_overrides_nest_and_end_even_after_an_error() -> None:
    """An inner override adds to the outer one, and an exception leaves nothing behind."""
    before = options.value("chip"), options.value("rules")
    with options.override(chip="trn1"):
        _fail_under(rules="off", expected=("trn1", "off"))
        assert (options.value("chip"), options.value("rules")) == ("trn1", before[1])
    assert (options.value("chip"), options.value("rules")) == before


@pytest.mark.parametrize(
    ("word", "meant"),
    [*[(word, True) for word in ("1", "true", "Yes", "on")], *[(word, False) for word in ("0", "no", "OFF", "")]],
)
def test_a_switch_reads_the_usual_words(monkeypatch: pytest.MonkeyPatch, word: str, meant: bool) -> None:
    """A switch in the environment understands what people write there."""
    monkeypatch.setenv("NKITOOLS_REQUIRE_HW", word)
    assert options.value("require_hw") is meant


@pytest.mark.parametrize(
    ("name", "variable", "text"),
    [
        ("rules", "NKITOOLS_RULES", "NKITOOLS_RULES is 'loud'; choose one of error, strict, report, off."),
        ("prints", "NKITOOLS_PRINTS", "NKITOOLS_PRINTS is 'loud'; choose one of 1, true, yes, on, 0, false, no, off."),
    ],
)
def test_a_bad_variable_is_named_with_its_choices(
    monkeypatch: pytest.MonkeyPatch, name: str, variable: str, text: str
) -> None:
    """Whoever mistypes a variable learns which one, and what it may say."""
    monkeypatch.setenv(variable, "loud")
    with pytest.raises(ValueError, match="choose one of") as caught:
        options.value(name)
    assert str(caught.value) == text


def test_a_bad_override_is_refused_before_the_body_runs() -> None:
    """An override is checked like a variable; an unknown option is a KeyError."""
    refused = "option 'chip' is 'trn9'; choose one of trn1, inf2"
    with pytest.raises(ValueError, match=refused), options.override(chip="trn9"):
        pytest.fail("the body ran")
    with pytest.raises(KeyError, match="chipp"), options.override(chipp="trn1"):
        pytest.fail("the body ran")


def test_every_name_follows_its_pattern() -> None:
    """Flags, ini keys and variables are prefixed and spell the option's own name."""
    for option in options.OPTIONS.values():
        short = option.name.removeprefix("nki_")
        assert option.ini == f"nki_{short}"
        assert option.env == f"NKITOOLS_{option.name.upper()}"
        assert option.flag in (None, f"--nki-{short.replace('_', '-')}")


@pytest.mark.process
def test_reading_an_option_imports_nothing_heavy() -> None:
    """The table is read at the start of every pytest session, so it may not cost one."""
    heavy = "{'numpy', 'jax', 'click', 'rich', 'pytest'}"
    code = f"import sys, nkitools.facts.options; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_variable_is_what_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where tests put another mapping in the place of the environment."""
    monkeypatch.setenv("NKITOOLS_CHIP", "gr\xfc\xdfe")
    assert options.variable("NKITOOLS_CHIP") == os.environ["NKITOOLS_CHIP"]
    monkeypatch.delenv("NKITOOLS_CHIP")
    assert options.variable("NKITOOLS_CHIP") == ""
    monkeypatch.setattr(os, "environ", {"NKITOOLS_CHIP": "trn1"})
    assert options.variable("NKITOOLS_CHIP") == "trn1"
    assert options.value("chip") == "trn1"
    assert options.variable("NKITOOLS_RULES") == ""
