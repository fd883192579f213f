"""What the environment says of a launch."""

from __future__ import annotations

import numpy as np
import pytest

import nkitools
from nkitools.launch.settings import resolve_level
from tests.launch.kernels import doubled

X = np.ones((8, 4), np.float32)


@pytest.mark.parametrize("level", ["error", "report", "off"])
def test_full_precision_is_refused_at_every_level(monkeypatch: pytest.MonkeyPatch, level: str) -> None:
    """NKI_PRECISE_FP=0 asks for what is not modelled (NK607)."""
    monkeypatch.setenv("NKI_PRECISE_FP", "0")
    with nkitools.collect_runs() as runs, pytest.raises(nkitools.NotModelled, match="NKI_PRECISE_FP=0"):
        nkitools.simulate(doubled, X, rules=level)
    assert len(runs) == 1


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
