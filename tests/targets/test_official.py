"""AWS's simulators as a target: told apart from stand-ins and placeholders, and run where they are real."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from nkitools.dialects.stand_in import StandInFinder
from nkitools.facts import options
from nkitools.record.run_listeners import collect_runs
from nkitools.rules.finding import NotModelled
from nkitools.targets import packages
from nkitools.targets.official import OfficialSimulator

AWS_NAMES = ("nki", "neuronxcc")
MODERN = """
import os
def simulate(kernel):
    def call(*args, **kwargs):
        return kernel(*args, **kwargs), os.environ.get("NEURON_PLATFORM_TARGET_OVERRIDE")
    return call
"""


@pytest.fixture(autouse=True)
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory of packages in front of all others, no module of AWS's names left from elsewhere, no stand-in."""
    finders = [finder for finder in sys.meta_path if not isinstance(finder, StandInFinder)]
    monkeypatch.setattr(sys, "meta_path", finders)
    kept = {name: module for name, module in sys.modules.items() if name.split(".")[0] in AWS_NAMES}
    for name in kept:
        del sys.modules[name]
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("NEURON_PLATFORM_TARGET_OVERRIDE", raising=False)
    packages.aws_package.cache_clear()
    yield tmp_path
    for name in [name for name in sys.modules if name.split(".")[0] in AWS_NAMES]:
        del sys.modules[name]
    sys.modules.update(kept)
    packages.aws_package.cache_clear()


def _package(site: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def double(x: int) -> int:
    """What stands for a kernel: AWS's simulator is a stand-in here too, and calls it."""
    return 2 * x


def test_without_awss_packages_it_says_so() -> None:
    """Nothing installed: the reason names both packages and the way out."""
    found = OfficialSimulator().available()
    assert found == (
        False,
        "AWS's simulator is not installed: no package nki of AWS's own; no package neuronxcc of AWS's own. "
        "Install AWS's nki or neuronx-cc from AWS's package index, or take --nki-simulator=builtin.",
    )


def test_the_placeholder_of_pypi_is_not_imported(site: Path) -> None:
    """PyPI's nki is an __init__ that raises; it counts as absent, and is not even run."""
    _package(site, {"nki/__init__.py": "raise SystemExit('WRONG PACKAGE')"})
    assert "no package nki of AWS's own" in OfficialSimulator().available().reason


def test_a_stand_in_is_not_aws(site: Path) -> None:
    """A module that answers to the name but lies elsewhere is ours, not AWS's."""
    _package(site, {"nki/__init__.py": MODERN, "nki/isa.py": ""})
    imposter = ModuleType("nki")
    imposter.simulate = lambda kernel: kernel  # type: ignore[attr-defined]
    sys.modules["nki"] = imposter
    found = OfficialSimulator().available()
    assert not found.ok
    assert "nkitools stands in for nki (nki_stand_in = always)" in found.reason


def test_a_package_too_old_or_broken_is_reported(site: Path) -> None:
    """What is installed but does not serve is named with what it lacks."""
    _package(site, {"nki/__init__.py": "import no_such_module_here", "nki/isa.py": ""})
    _package(site, {"neuronxcc/__init__.py": "", "neuronxcc/nki/__init__.py": ""})
    reason = OfficialSimulator().available().reason
    assert "nki does not import (ModuleNotFoundError: No module named 'no_such_module_here')" in reason
    assert "neuronxcc.nki has no simulate_kernel" in reason


def test_the_modern_simulator_runs_with_the_chip_of_the_options(site: Path) -> None:
    """The kernel's outputs come back in a Run, and AWS's chip variable is set for that time only."""
    _package(site, {"nki/__init__.py": MODERN, "nki/isa.py": ""})
    with options.override(chip="trn1"), collect_runs() as runs:
        run = OfficialSimulator().run(double, 4)
    assert run.outputs == (8, "trn1")
    assert (run.kernel, run.target, run.chip) == ("double", "nki.simulate", "trn1")
    assert runs == [run]
    assert "NEURON_PLATFORM_TARGET_OVERRIDE" not in os.environ


@pytest.mark.parametrize(
    ("said", "variable", "seen"), [("full", None, "0"), ("precise", "0", "1"), (None, "0", "0"), (None, None, None)]
)
def test_the_precision_of_the_options_reaches_it(
    site: Path, monkeypatch: pytest.MonkeyPatch, said: str | None, variable: str | None, seen: str | None
) -> None:
    """By AWS's variable, which the option comes before; the run says which it was."""
    text = MODERN.replace("NEURON_PLATFORM_TARGET_OVERRIDE", "NKI_PRECISE_FP")
    _package(site, {"nki/__init__.py": text, "nki/isa.py": ""})
    monkeypatch.delenv("NKI_PRECISE_FP", raising=False)
    if variable is not None:
        monkeypatch.setenv("NKI_PRECISE_FP", variable)
    with options.override(precision=said):
        run = OfficialSimulator().run(double, 4)
    assert run.outputs == (8, seen)
    assert run.precision == ("full" if seen == "0" else "precise")
    assert os.environ.get("NKI_PRECISE_FP") == variable


def test_the_legacy_simulator_serves_where_the_modern_one_is_absent(site: Path) -> None:
    """neuronxcc.nki.simulate_kernel takes the kernel and its arguments; a failing run is recorded with its error."""
    text = "def simulate_kernel(kernel, *args):\n    return kernel(*args)\n"
    _package(site, {"neuronxcc/__init__.py": "", "neuronxcc/nki/__init__.py": text})
    assert OfficialSimulator().available() == (True, "neuronxcc.nki.simulate_kernel")
    assert OfficialSimulator().run(double, 4).outputs == 8
    with collect_runs() as runs, pytest.raises(TypeError, match="missing 1 required") as caught:
        OfficialSimulator().run(double)
    assert [run.error for run in runs] == [caught.value]


@pytest.mark.parametrize("keyword", ["grid", "ranks", "rules"])
def test_what_aws_does_not_take_is_refused_by_name(site: Path, keyword: str) -> None:
    """A parameter of our own simulator is not dropped on the way to AWS's."""
    _package(site, {"nki/__init__.py": MODERN, "nki/isa.py": ""})
    with pytest.raises(NotModelled, match=rf"nki\.simulate has no parameter `{keyword}`"):
        OfficialSimulator().run(double, 4, **{keyword: 2})


def test_running_without_it_is_refused() -> None:
    """No fall back to another simulator: who asked for AWS's is told that it is not here."""
    with pytest.raises(NotModelled, match="`double` was asked to run in AWS's simulator: AWS's simulator is not inst"):
        OfficialSimulator().run(double, 4)
