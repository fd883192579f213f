"""`nkitools rules` and `nkitools explain`: the catalogue, for people and for machines."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner, Result

from nkitools.cli import main
from nkitools.rules.catalogue import RULES


def called(*args: str) -> Result:
    """The command with ``args``, its output not going to a terminal."""
    return CliRunner().invoke(main, args)


def test_rules_lists_every_rule_on_a_line_of_its_own() -> None:
    """One line a rule, in order, with id, name, severity and the whole reason."""
    result = called("rules")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert [line.split()[:3] for line in lines] == [[rule.id, rule.slug, rule.severity] for rule in RULES.values()]
    assert all(line.endswith(rule.reason) for line, rule in zip(lines, RULES.values(), strict=True))


def test_a_terminal_gets_reasons_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Below the id, name and severity, in lines of the terminal's width; nothing of a reason is lost."""
    for name, value in {"COLUMNS": "80", "FORCE_COLOR": "1", "NO_COLOR": "1", "TERM": "xterm"}.items():
        monkeypatch.setenv(name, value)
    text = re.sub(r"\x1b\[[0-9;]*m", "", called("rules").stdout)
    assert max(map(len, text.splitlines())) <= 80
    for rule in RULES.values():
        assert rule.reason in " ".join(text.split())


def test_rules_of_one_family() -> None:
    """--family takes its name in any case, and an unknown one is a usage error that lists those there are."""
    result = called("rules", "--family", "nk1")
    assert {line[:3] for line in result.stdout.splitlines()} == {"NK1"}
    unknown = called("rules", "--family", "NK9")
    assert unknown.exit_code == 2
    assert "no family NK9; there are NK1, NK2" in unknown.stderr


def test_rules_as_json() -> None:
    """--format json has every field of every rule."""
    listed = json.loads(called("rules", "--format", "json").stdout)
    assert [rule["id"] for rule in listed] == list(RULES)
    assert set(listed[0]) == {
        *("id", "slug", "severity", "chips", "reason", "source", "remedy", "bad", "good", "aliases", "since"),
        *("replacements", "facts", "examples"),
    }


@pytest.mark.parametrize("name", ["NK101", "nk101", "partition-limit", "err_num_partition_exceed_arch_limit"])
def test_explain_takes_every_name_of_a_rule(name: str) -> None:
    """Id, slug and the legacy dialect's code, in any case, lead to the same text."""
    result = called("explain", name)
    assert result.exit_code == 0
    assert result.stdout.startswith("NK101 partition-limit (error)\n\nReason\n")
    flowing = " ".join(result.stdout.split())
    rule = RULES["NK101"]
    for part in (rule.reason, rule.source, " ".join(rule.chips), rule.remedy, *rule.aliases):
        assert part in flowing
    for line in [*rule.bad.splitlines(), *rule.good.splitlines()]:
        assert line.strip() in result.stdout


def test_explain_shows_the_plainest_example_or_all() -> None:
    """Without --all it says that there are more."""
    plain, every = called("explain", "NK101").stdout, called("explain", "NK101", "--all").stdout
    assert "`nkitools explain NK101 --all`" in plain
    assert [text.count("\nBad\n") for text in (plain, every)] == [1, len(RULES["NK101"].examples)]
    assert "--all" not in every
    listed = json.loads(called("explain", "NK101", "--format", "json").stdout)["examples"]
    assert [(each["bad"], each["good"]) for each in listed] == list(RULES["NK101"].examples)


@pytest.mark.parametrize("rule_id", RULES)
def test_explain_knows_every_rule(rule_id: str) -> None:
    """Each rule of the catalogue can be explained, in both forms."""
    assert called("explain", rule_id).stdout.startswith(f"{rule_id} {RULES[rule_id].slug} (")
    assert json.loads(called("explain", rule_id, "--format", "json").stdout)["remedy"] == RULES[rule_id].remedy


@pytest.mark.parametrize(
    ("name", "near"), [("NK1011", "NK101 partition-limit"), ("partition-limits", "NK101 partition-limit")]
)
def test_an_unknown_rule_is_a_usage_error_with_what_is_near(name: str, near: str) -> None:
    """Exit code 2, and the rules whose names look alike."""
    result = called("explain", name)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert f"no rule is called '{name}'. Did you mean" in result.stderr
    assert near in result.stderr


def test_nothing_like_it_points_to_the_list() -> None:
    """Where nothing is near, no guess is made."""
    assert "no rule is called '%%%'. `nkitools rules` lists them all." in called("explain", "%%%").stderr


@pytest.mark.process
@pytest.mark.parametrize(
    ("variables", "coloured"), [({"FORCE_COLOR": "1"}, True), ({"NO_COLOR": "1"}, False), ({}, False)]
)
def test_colour_is_for_terminals(variables: dict[str, str], coloured: bool) -> None:
    """Piped output is plain; FORCE_COLOR and NO_COLOR are honoured."""
    environment = {"PATH": "", "PYTHONPATH": ":".join(sys.path), "TERM": "xterm", **variables}
    done = subprocess.run(
        [sys.executable, "-m", "nkitools", "explain", "NK101"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ("\x1b[" in done.stdout) is coloured


@pytest.mark.process
def test_the_catalogue_is_read_without_the_simulator() -> None:
    """Looking up a rule waits for no NumPy."""
    code = (
        "import sys; from click.testing import CliRunner; from nkitools.cli import main; "
        "CliRunner().invoke(main, ['explain', 'NK101']); print(sorted({'numpy', 'jax'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_version_is_the_packages() -> None:
    """`nkitools --version` says which one this is."""
    import nkitools

    assert called("--version").stdout == f"nkitools {nkitools.__version__}\n"


def test_explain_takes_codes_and_logs_of_aws() -> None:
    """A code by name or number, as text and JSON; a log on standard input, the cause first; a log without a code."""
    assert called("explain", "1006").stdout.startswith("NRT_EXEC_OOB (1006) (runtime status)\n  Meaning: an indirect")
    plain = json.loads(called("explain", "IGCA044", "--format=json").stdout)
    assert [(one["code"], one["rules"]) for one in plain] == [("NCC_IGCA044", ["NK202"])]
    log = "Subcommand returned with exitcode=70\n[ERROR] [NCC_EBVF030] too many\n"
    for args in ((), ("-",)):
        result = CliRunner().invoke(main, ["explain", *args], input=log)
        assert result.exit_code == 0
        assert result.stdout.index("NCC_EBVF030") < result.stdout.index("exit code 70")
        assert "Found before by: NK709 unrolled-far" in result.stdout
    nothing = CliRunner().invoke(main, ["explain"], input="all went well\n")
    assert (nothing.exit_code, "names no code" in nothing.stderr) == (1, True)
