"""``[tool.nkitools.lint]`` of pyproject.toml."""

from __future__ import annotations

from pathlib import Path

import pytest

from nkitools.lint.settings import Settings, WrongSettings, rule_ids, settings_for
from nkitools.rules.catalogue import RULES
from nkitools.rules.finding import Finding

FULL = """\
[tool.nkitools.lint]
select = ["NK6", "partition-limit"]
ignore = ["NK616", "err_1d_arange_not_supported"]
dialect = "modern"
exclude = ["third_party/*", "old.py"]
per-file-ignores = { "tests/*" = ["NK617"] }
"""
WRONG = {
    "an unknown key": ("[tool.nkitools.lint]\nselct = []", "has no `selct`"),
    "an unknown rule": ("[tool.nkitools.lint]\nignore = ['NK999']", "no rule is called 'NK999'"),
    "an unknown dialect": ("[tool.nkitools.lint]\ndialect = 'old'", "choose one of auto, modern, legacy"),
    "no list": ("[tool.nkitools.lint]\nselect = 'NK601'", "select must be a list of texts"),
    "no texts": ("[tool.nkitools.lint]\nexclude = [1]", "exclude must be a list of texts"),
    "no table": ("[tool.nkitools]\nlint = 1", "must be a table"),
    "no table of files": ("[tool.nkitools.lint]\nper-file-ignores = []", "must be a table"),
    "no TOML": ("[tool", "pyproject.toml"),
}


def finding(rule: str, file: Path) -> Finding:
    return Finding(rule, RULES[rule].slug, RULES[rule].severity, "message", str(file), 1, "remedy")


def test_the_nearest_file_with_the_table_decides(tmp_path: Path) -> None:
    """A pyproject.toml of a part of the project that says nothing of lint is passed over."""
    (tmp_path / "pyproject.toml").write_text(FULL)
    part = tmp_path / "part" / "deeper"
    part.mkdir(parents=True)
    (tmp_path / "part" / "pyproject.toml").write_text("[project]\nname = 'part'\n")
    settings = settings_for(part)
    assert settings.directory == tmp_path
    assert settings.dialect == "modern"
    assert settings.ignore == {"NK616", "NK603"}
    assert {"NK101", "NK601", "NK619"} < settings.select
    assert not {"NK102", "NK201"} & settings.select


def test_without_any_everything_is_wanted(tmp_path: Path) -> None:
    """No settings are the defaults."""
    settings = Settings(directory=tmp_path)
    assert all(settings.wants(finding(rule, tmp_path / "a.py")) for rule in RULES)
    assert not settings.excludes(tmp_path / "a.py")


def test_what_is_wanted(tmp_path: Path) -> None:
    """Selected, not ignored, and not ignored for that file."""
    (tmp_path / "pyproject.toml").write_text(FULL)
    settings = settings_for(tmp_path / "kernels.py")
    here, test = tmp_path / "kernels.py", tmp_path / "tests" / "deep" / "test_it.py"
    assert [settings.wants(finding(rule, here)) for rule in ("NK601", "NK101", "NK102", "NK616", "NK617")] == [
        True,
        True,
        False,
        False,
        True,
    ]
    assert not settings.wants(finding("NK617", test))
    assert settings.wants(finding("NK601", test))


def test_what_is_excluded(tmp_path: Path) -> None:
    """Patterns are those of paths below the file; a directory that fits takes everything in it along."""
    (tmp_path / "pyproject.toml").write_text(FULL)
    settings = settings_for(tmp_path)
    excluded = ("third_party/a.py", "third_party/deep/a.py", "old.py")
    assert all(settings.excludes(tmp_path / name) for name in excluded)
    assert not any(settings.excludes(tmp_path / name) for name in ("a.py", "sub/old.py", "third_party2/a.py"))


@pytest.mark.parametrize(("text", "said"), WRONG.values(), ids=WRONG)
def test_settings_that_mean_nothing(tmp_path: Path, text: str, said: str) -> None:
    """The error names the file, and what there is."""
    file = tmp_path / "pyproject.toml"
    file.write_text(text)
    with pytest.raises(WrongSettings) as raised:
        settings_for(tmp_path)
    assert said in str(raised.value)
    assert str(file) in str(raised.value)


def test_rules_by_every_name() -> None:
    """By id, name, legacy code and family; an unknown one is told its neighbours."""
    assert rule_ids(["nk601", "tensor-truth-value", "err_unsupported_expression_in_mask"]) == {
        "NK601",
        "NK602",
        "NK604",
    }
    assert rule_ids(["NK1"]) == {rule for rule in RULES if rule.startswith("NK1")}
    with pytest.raises(ValueError, match="Did you mean"):
        rule_ids(["NK699"])
