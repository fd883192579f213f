"""Every Pallas rule keeps its word: its bad example is reported at the marked line, its good one never."""

from __future__ import annotations

from contextvars import Context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402

import nkitools  # noqa: E402
from nkitools.pallas import check  # noqa: E402
from nkitools.pallas.one_check import CheckedRun  # noqa: E402
from nkitools.rules.catalogue import RULES, Rule  # noqa: E402
from tests.pallas.measured import takes  # noqa: E402

RULES_OF_PALLAS = [rule for rule in RULES.values() if rule.id.startswith("PL")]
TAKEN = {"PL102": "libtpu 0.0.50"}  # the rules that a newer compiler has no more
each_rule = pytest.mark.parametrize("rule", RULES_OF_PALLAS, ids=lambda rule: rule.id)


def played(source: str, path: Path, **how: Any) -> CheckedRun:
    """The run of an example, from a file of its own; nobody who listens to runs hears of it."""
    path.write_text(source)
    names: dict[str, Any] = {"__name__": "example", "jax": jax, "jnp": jax.numpy, "np": np, "pl": pl, "pltpu": pltpu}
    exec(compile(source, str(path), "exec"), names)
    return Context().run(lambda: check(names["kernel"], *names["inputs"], reference=names.get("reference"), **how))


def marked_line(rule: Rule) -> int:
    lines = rule.bad.splitlines()
    return next(number for number, line in enumerate(lines, start=1) if line.endswith(f"  # {rule.id}"))


@each_rule
def test_the_bad_example_reports_its_rule_at_its_line_and_nothing_else(rule: Rule, tmp_path: Path) -> None:
    """One cause gives one finding, at the line that the author has to change; as an error it is raised.

    Where the compiler of here takes what older ones refuse, there is nothing to report.
    """
    path = tmp_path / "example.py"
    run = played(rule.bad, path)
    if takes(TAKEN.get(rule.id, "")):
        assert run.findings == []
        return
    assert [(each.rule, each.file, each.line) for each in run.findings] == [(rule.id, str(path), marked_line(rule))]
    assert run.findings[0].severity == rule.severity
    if rule.severity != "error":
        return
    with pytest.raises(nkitools.KernelError) as caught:
        played(rule.bad, path, rules="error")
    assert (caught.value.finding.rule, caught.value.finding.line) == (rule.id, marked_line(rule))


@each_rule
def test_the_good_example_reports_nothing(rule: Rule, tmp_path: Path) -> None:
    """The mended kernel passes in every mode, and every element of what it returns was computed."""
    run = played(rule.good, tmp_path / "example.py")
    assert run.findings == []
    assert not np.isnan(np.asarray(run.outputs, dtype=np.float32)).any()
