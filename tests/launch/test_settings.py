"""What the environment says of a launch."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import nkitools
from nkitools.facts import options
from nkitools.launch.settings import resolve_level, resolve_precision
from tests.launch.kernels import doubled

X = np.ones((8, 4), np.float32)


@pytest.mark.parametrize(("value", "dtype"), [("0", np.float32), ("1", ml_dtypes.bfloat16)])
def test_aws_variable_decides_the_precision(monkeypatch: pytest.MonkeyPatch, value: str, dtype: Any) -> None:
    """NKI_PRECISE_FP=0 is full precision."""
    monkeypatch.setenv("NKI_PRECISE_FP", value)
    assert nkitools.simulate(doubled, X.astype(ml_dtypes.bfloat16)).outputs.dtype == dtype


@pytest.mark.parametrize("value", ["2", "false", "full"])
def test_another_value_of_it_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """By name; and before the run, as it says nothing about the kernel."""
    monkeypatch.setenv("NKI_PRECISE_FP", value)
    with nkitools.collect_runs() as runs, pytest.raises(ValueError, match=f"NKI_PRECISE_FP is '{value}'; choose 1"):
        nkitools.simulate(doubled, X)
    assert runs == []


def test_the_option_comes_before_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """An override, then NKITOOLS_PRECISION, then AWS's variable, then precise."""
    monkeypatch.delenv("NKI_PRECISE_FP", raising=False)
    assert nkitools.simulate(doubled, X).precision == "precise"
    monkeypatch.setenv("NKI_PRECISE_FP", "0")
    assert nkitools.simulate(doubled, X).precision == "full"
    monkeypatch.setenv("NKITOOLS_PRECISION", "precise")
    assert nkitools.simulate(doubled, X).precision == "precise"
    with options.override(precision="full"):
        assert nkitools.simulate(doubled, X).precision == "full"
    with pytest.raises(ValueError, match="must be one of precise, full, it is 'exact'"):
        resolve_precision("exact")


@pytest.mark.parametrize("value", ["", "1"])
def test_precise_mode_is_what_there_is(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """Its default may be spelled out."""
    monkeypatch.setenv("NKI_PRECISE_FP", value)
    np.testing.assert_array_equal(nkitools.simulate(doubled, X).outputs, 2 * X)


def test_the_simulator_variable_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """NKI_SIMULATOR=1 asks for what happens anyway."""
    monkeypatch.setenv("NKI_SIMULATOR", "1")
    np.testing.assert_array_equal(doubled(X), 2 * X)


def test_the_level_is_the_argument_else_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    """NKITOOLS_RULES is read where the call says nothing."""
    monkeypatch.setenv("NKITOOLS_RULES", "report")
    assert (resolve_level(None), resolve_level("off")) == ("report", "off")
    monkeypatch.setenv("NKITOOLS_RULES", "loud")
    with pytest.raises(ValueError, match="NKITOOLS_RULES is 'loud'"):
        resolve_level(None)


@pytest.mark.parametrize("value", ["gen2", "trn1"])
def test_the_chip_comes_from_awss_variables(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """NEURON_PLATFORM_TARGET_OVERRIDE before NKI_NC_VERSION."""
    monkeypatch.setenv("NKI_NC_VERSION", "gen4")
    assert nkitools.simulate(doubled, X).chip == "gen4"
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", value)
    assert nkitools.simulate(doubled, X).chip == value
    assert nkitools.simulate(doubled, X, chip="trn3").chip == "trn3"


@pytest.mark.parametrize("wrong", [3, ["trn1"], {"off": 1}])
@pytest.mark.parametrize("name", ["chip", "rules", "nki_version", "replay"])
def test_an_argument_of_another_kind_is_named(name: str, wrong: Any) -> None:
    """Also one that cannot be a key of a dictionary, with what there is to choose from."""
    with pytest.raises((TypeError, ValueError), match=f"^{name}: must be one of "):
        nkitools.simulate(doubled, X, **{name: wrong})
