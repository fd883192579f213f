"""Findings for machines: SARIF, JSON, annotations of GitHub."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nkitools.report.findings import with_suggestions
from nkitools.report.github import annotation
from nkitools.report.sarif import as_sarif, sarif_log
from nkitools.rules.catalogue import RULES
from nkitools.rules.finding import Finding


def finding(rule: str, file: str, line: int = 3, column: int | None = 5, message: str = "a message") -> Finding:
    found = RULES[rule]
    return Finding(rule, found.slug, found.severity, message, file, line, found.remedy, column, function="kernel")


def _checked(value: Any, form: Any, path: str = "log") -> None:
    """Hold a JSON value against a form: a dictionary of forms (a name with ``?`` may be missing, no other name may be
    there), a list with the form of each element, a set of values, a type.
    """
    if isinstance(form, dict):
        assert isinstance(value, dict), path
        names = {name.rstrip("?"): name for name in form}
        assert set(value) <= set(names), f"{path}: {set(value) - set(names)}"
        assert {name for name in form if not name.endswith("?")} <= set(value), path
        for name, inner in value.items():
            _checked(inner, form[names[name]], f"{path}.{name}")
    elif isinstance(form, list):
        assert isinstance(value, list), path
        for number, each in enumerate(value):
            _checked(each, form[0], f"{path}[{number}]")
    elif isinstance(form, set):
        assert value in form, f"{path}: {value}"
    else:
        assert type(value) is form, f"{path}: {value!r}"


LEVEL = {"none", "note", "warning", "error"}
MESSAGE = {"text": str}
# The part of the schema of SARIF 2.1.0 (OASIS) that nkitools uses; in it no object has other properties.
SARIF = {
    "$schema": str,
    "version": {"2.1.0"},
    "runs": [
        {
            "tool": {
                "driver": {
                    "name": str,
                    "version": str,
                    "rules": [
                        {
                            "id": str,
                            "name": str,
                            "shortDescription": MESSAGE,
                            "fullDescription": MESSAGE,
                            "help": MESSAGE,
                            "defaultConfiguration": {"level": LEVEL},
                        }
                    ],
                }
            },
            "originalUriBaseIds": {"SRCROOT": {"uri": str}},
            "columnKind": {"utf16CodeUnits", "unicodeCodePoints"},
            "results": [
                {
                    "ruleId": str,
                    "ruleIndex": int,
                    "level": LEVEL,
                    "message": MESSAGE,
                    "occurrenceCount": int,
                    "properties": {"facts": dict, "places": list},
                    "locations": [
                        {
                            "physicalLocation": {
                                "artifactLocation": {"uri": str, "uriBaseId?": str},
                                "region": {"startLine": int, "startColumn?": int},
                            }
                        }
                    ],
                    "partialFingerprints": {"nkitoolsFinding/v1": str},
                }
            ],
        }
    ],
}


def test_a_log_has_the_form_of_the_schema(tmp_path: Path) -> None:
    """Also where nothing is found."""
    found = [finding("NK601", str(tmp_path / "a.py")), finding("NK616", "/elsewhere/b c.py", 0, None)]
    for some in (found, []):
        _checked(json.loads(as_sarif(some, tmp_path, "1.2")), SARIF)


def test_results_name_their_rules_and_places(tmp_path: Path) -> None:
    """Levels are those of SARIF, files below the root are relative to it, lines and columns count from 1."""
    found = [
        finding("NK616", str(tmp_path / "sub" / "a b.py"), message="one"),
        finding("NK601", "/elsewhere/b.py", 0, None),
        finding("NK619", str(tmp_path / "c.py")),
    ]
    (run,) = sarif_log(found, tmp_path, "1.2")["runs"]
    assert run["originalUriBaseIds"]["SRCROOT"]["uri"] == tmp_path.as_uri() + "/"
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["NK601", "NK616", "NK619"]
    assert [rules[each["ruleIndex"]]["id"] for each in run["results"]] == ["NK616", "NK601", "NK619"]
    assert [each["level"] for each in run["results"]] == ["note", "error", "warning"]
    places = [each["locations"][0]["physicalLocation"] for each in run["results"]]
    assert places[0] == {
        "artifactLocation": {"uri": "sub/a%20b.py", "uriBaseId": "SRCROOT"},
        "region": {"startLine": 3, "startColumn": 5},
    }
    assert places[1] == {"artifactLocation": {"uri": "file:///elsewhere/b.py"}, "region": {"startLine": 1}}
    again = replace(found[0], facts={"axis": 1}).again(replace(found[0], loops={"i": 1}))
    (result,) = sarif_log([again], tmp_path, "1.2")["runs"][0]["results"]
    assert (result["occurrenceCount"], result["properties"]["facts"]) == (2, {"axis": 1})
    assert [each["loops"] for each in result["properties"]["places"]] == [{}, {"i": 1}]
    assert result["message"]["text"].startswith("one (and 1 more: i=1). ")
    assert run["results"][0]["message"]["text"] == f"one. {RULES['NK616'].remedy}"


def test_a_finding_is_known_again_when_its_line_moves(tmp_path: Path) -> None:
    """Its fingerprint stays; two alike in one file have two."""
    file = str(tmp_path / "a.py")

    def prints(*lines: int) -> list[str]:
        (run,) = sarif_log([finding("NK601", file, line) for line in lines], tmp_path, "1")["runs"]
        return [each["partialFingerprints"]["nkitoolsFinding/v1"] for each in run["results"]]

    assert prints(3, 9) == prints(4, 20)
    assert len(set(prints(3, 9))) == 2
    (other,) = sarif_log([finding("NK601", file, message="other")], tmp_path, "1")["runs"]
    assert other["results"][0]["partialFingerprints"]["nkitoolsFinding/v1"] not in prints(3, 9)


def test_json(tmp_path: Path) -> None:
    """A finding of a source has the keys that those of a run have, and suggestions."""
    file = tmp_path / "a.py"
    file.write_text("import nki\n\n    x = {1, 2}  \n")
    told = json.loads(json.dumps(with_suggestions([finding("NK601", str(file), column=None)])))
    rule = RULES["NK601"]
    assert told == [
        {
            "rule": "NK601",
            "slug": rule.slug,
            "severity": "error",
            "message": "a message",
            "remedy": rule.remedy,
            "file": str(file),
            "line": 3,
            "column": None,
            "function": "kernel",
            "source": "    x = {1, 2}",
            "program": [],
            "loops": {},
            "rank": None,
            "picture": None,
            "facts": {},
            "count": 1,
            "places": [],
            "last": None,
            "suggestions": [],
        }
    ]


def test_annotations() -> None:
    """A workflow command a finding, with what would end a property or the command escaped."""
    remedy = RULES["NK601"].remedy
    assert annotation(finding("NK601", "a,b:c.py", message="50% of\nit")) == (
        f"::error file=a%2Cb%3Ac.py,line=3,col=5,title=NK601 python-not-in-nki::50%25 of%0Ait. {remedy}"
    )
    assert annotation(finding("NK616", "a.py", column=None)).startswith("::notice file=a.py,line=3,title=NK616 ")
    assert annotation(finding("NK619", "a.py")).startswith("::warning ")


def test_annotations_name_files_from_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GitHub knows no other path, whichever folder a step works in; a file elsewhere keeps its own."""
    (tmp_path / "kernels").mkdir()
    monkeypatch.chdir(tmp_path / "kernels")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    assert annotation(finding("NK616", "a.py", column=None)).startswith("::notice file=kernels/a.py,line=3,")
    assert annotation(finding("NK616", "/elsewhere/a.py", column=None)).startswith("::notice file=/elsewhere/a.py,")
