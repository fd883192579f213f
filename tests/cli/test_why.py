"""`nkitools why`: what an element of a saved run was made of."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import nkitools
from nkitools.cli import main
from tests.record.test_record import X, row_maxima


@pytest.fixture(autouse=True)
def _own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory of the test's own."""
    monkeypatch.chdir(tmp_path)


def why(*args: str) -> Result:
    return CliRunner().invoke(main, ["why", *args], catch_exceptions=False)


def test_a_saved_run_says_what_an_element_was_made_of() -> None:
    """The same lines as of the run itself, but for the values, which nothing has kept."""
    run = nkitools.simulate(row_maxima, X)
    run.save("run.json")
    done = why("run.json", "--element", "5,0")
    assert done.exit_code == 0
    lines = done.output.splitlines()
    assert lines[1].startswith("  without values: nothing was watched: save the run of `nkitools run --watch NAME`")
    assert lines[-1] == f"  argument: x[5, 0:{X.shape[1]}] ({X.shape[1]} elements)"
    assert len(lines) == len(run.why(0, (5, 0)).lines) + 1


def test_a_watched_run_has_its_values() -> None:
    """What a watch has kept is shown, in the saved run as well."""
    with nkitools.watching():
        run = nkitools.simulate(row_maxima, X)
    run.save("run.json")
    done = why("run.json", "--element", "5,0", "--output", "0")
    assert done.output.splitlines()[0].endswith(f"[5, 0] = {X[5].max():.6g}")
    assert done.output == run.why(0, (5, 0)).text() + "\n"
    loaded = nkitools.load_run("run.json").why(0, (5, 0))
    assert loaded.asked.values.tolist() == [np.max(X[5])]


def test_it_is_one_object_as_json() -> None:
    """The elements as boxes, the value of a single one, and the line of each instruction."""
    with nkitools.watching():
        run = nkitools.simulate(row_maxima, X)
    run.save("run.json")
    plain = json.loads(why("run.json", "--element", "5,0", "--json").output)
    assert plain["asked"]["value"] == float(X[5].max())
    assert plain["arguments"] == [
        {"operand": "", "elements": f"x[5, 0:{X.shape[1]}]", "count": X.shape[1], "value": None}
    ]
    steps = run.why(0, (5, 0)).steps
    assert [(each["position"], each["line"]) for each in plain["steps"]] == [
        (each.position, each.instruction.line) for each in steps
    ]


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (("--element", "1000000,0"), "lies outside of the output"),
        (("--element", "a"), "must be whole numbers or ranges, 3,17 or 0:4,17"),
        (("--element", "0", "--output", "nothing"), "no tensor of the run is called 'nothing'"),
    ],
)
def test_mistakes_are_said(args: tuple[str, ...], text: str) -> None:
    """Exit code 2, and what is wrong."""
    nkitools.simulate(row_maxima, X).save("run.json")
    done = why("run.json", *args)
    assert done.exit_code == 2
    assert text in done.output.replace("\n", " ")
