"""`nkitools doctor`: what this machine has, for people and for machines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from nkitools.cli import main
from nkitools.targets import examination
from nkitools.targets.examination import Part, examine


def called(*args: str) -> Result:
    """The command with ``args``, its output not going to a terminal."""
    return CliRunner().invoke(main, ["doctor", *args])


PARTS = [
    Part("Packages", "jax", True, "0.10.2", "Pallas kernels"),
    Part("Devices", "tpu", False, "no TPU: found no device node [x]", "-m hw on a TPU", "on a TPU VM: pip install"),
    Part("Environment", "JAX_PLATFORMS", False, "not set", "what jax.devices() shows"),
    Part("Environment", "NKITOOLS_CHIP", True, "trn1", "the chip that is simulated"),
]


def test_text_says_of_each_part_whether_it_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Below its area: what was found, what it enables and, where it is missing, how to get it; no remedy otherwise."""
    monkeypatch.setattr(examination, "examine", lambda: PARTS)
    result = called()
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "Packages",
        "  yes jax            0.10.2",
        "                     Pallas kernels",
        "Devices",
        "  no  tpu            no TPU: found no device node [x]",
        "                     -m hw on a TPU",
        "                     on a TPU VM: pip install",
        "Environment",
        "      JAX_PLATFORMS  not set",
        "                     what jax.devices() shows",
        "  set NKITOOLS_CHIP  trn1",
        "                     the chip that is simulated",
    ]


@pytest.mark.process
def test_json_has_every_field_of_every_part(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The real machine, bare of devices: what the text says, as data with a version of its form."""
    monkeypatch.setenv("NKITOOLS_SYSROOT", str(tmp_path))
    told = json.loads(called("--format", "json").stdout)
    assert told["schema"] == 1
    assert [(part["area"], part["name"]) for part in told["parts"]] == [(part.area, part.name) for part in examine()]
    assert all(part.keys() == {"area", "name", "present", "found", "enables", "remedy"} for part in told["parts"])
    devices = {part["name"]: part for part in told["parts"] if part["area"] == "Devices"}
    assert not devices["neuron"]["present"]
    assert devices["neuron"]["remedy"]
