"""Locks on devices between processes, and the variables that name the one that a process holds."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from nkitools.targets.neuron import NeuronDevice
from nkitools.targets.units import DeviceBusy, is_waited_for, units_of
from tests.fakes import machines

pytestmark = pytest.mark.usefixtures("root")


def test_processes_of_two_degrees_share_physical_cores(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A logical core of two holds the locks of both; a process knows the cores of the user, not only its own."""
    machines.neuron_root(root, instance="Trn2", architecture="NCv3", devices=2)
    one, two = NeuronDevice(), NeuronDevice().of_degree(2)
    assert (len(one.units()), two.units()) == (4, ("neuroncore-0", "neuroncore-1"))
    with units_of([one], 0) as first, units_of([two], 0) as second:
        assert first["NEURON_RT_VISIBLE_CORES"] == "0"
        assert (second["NEURON_RT_VISIBLE_CORES"], second["NEURON_LOGICAL_NC_CONFIG"]) == ("1", "2")
        with pytest.raises(DeviceBusy):
            units_of([two], 0).__enter__()
        for name, value in second.items():
            monkeypatch.setenv(name, value)
        with units_of([NeuronDevice().of_degree(1)], 0) as beside:  # in the process of the second
            assert (beside["NEURON_RT_VISIBLE_CORES"], beside["NEURON_LOGICAL_NC_CONFIG"]) == ("1", "1")
    for name in second:
        monkeypatch.delenv(name)
    # The numbers that a user has set count in the user's degree.
    monkeypatch.setenv("NEURON_LOGICAL_NC_CONFIG", "2")
    monkeypatch.setenv("NEURON_RT_VISIBLE_CORES", "1")
    assert NeuronDevice().units() == ("neuroncore-1",)
    assert NeuronDevice().of_degree(1).units() == ("neuroncore-2", "neuroncore-3")


def test_a_core_goes_to_one_process_at_a_time(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each holder gets a core of its own and the variable that names it; the third is told who has them."""
    machines.neuron_root(root)
    device = NeuronDevice()
    with units_of([device], 0) as first, units_of([device], 0) as second:
        shown = {name: value for name, value in first.items() if name.startswith("NEURON_")}
        assert shown == {
            "NEURON_RT_VISIBLE_CORES": "0",
            "NEURON_PLATFORM_TARGET_OVERRIDE": "inf2",
            "NEURON_LOGICAL_NC_CONFIG": "1",
        }
        artifacts = first["NKI_ARTIFACTS_DIR"]
        assert Path(artifacts).is_dir()
        assert artifacts != second["NKI_ARTIFACTS_DIR"]
        assert second["NEURON_RT_VISIBLE_CORES"] == "1"
        with pytest.raises(DeviceBusy, match=r"NeuronCore busy: neuroncore-0 is held by process \d+; neuroncore-1"):
            units_of([device], 0).__enter__()
    assert not Path(artifacts).exists()
    with units_of([device], 0) as again:
        assert again["NEURON_RT_VISIBLE_CORES"] == "0"
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn1")
    with units_of([device], 0) as told:
        assert told["NEURON_PLATFORM_TARGET_OVERRIDE"] == "trn1"


def test_who_waits_for_a_device_is_seen(root: Path) -> None:
    """A holder that has had its turn gives way; without anybody waiting it need not."""
    machines.neuron_root(root)
    device = NeuronDevice()
    with units_of([device], 0), units_of([device], 0):
        assert not is_waited_for(device)
        waiting = threading.Thread(target=_hold, args=(device,))
        waiting.start()
        until = time.monotonic() + 30
        while not is_waited_for(device) and time.monotonic() < until:
            time.sleep(0.01)
        assert is_waited_for(device)
    waiting.join(30)
    assert not waiting.is_alive()
    assert not is_waited_for(device)


def _hold(device: NeuronDevice) -> None:
    with units_of([device], 60):
        pass


def test_locks_of_another_user_can_be_locked(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their files cannot be written, and need not be."""
    machines.neuron_root(root)
    (root / "nkitools-neuroncore-0.lock").write_text("1")
    real = open

    def refusing(path: Any, mode: str = "r", **kwargs: Any) -> Any:
        if mode == "a":
            raise PermissionError(path)
        return real(path, mode, **kwargs)

    monkeypatch.setattr("builtins.open", refusing)
    with units_of([NeuronDevice()], 0) as environment:
        assert environment["NEURON_RT_VISIBLE_CORES"] == "0"
