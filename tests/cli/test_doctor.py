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
    verdict, empty, *lines = result.stdout.splitlines()
    assert (verdict, empty) == ("You cannot run tests on a device: no TPU.", "")
    assert lines == [
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


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [
        (
            [
                Part("Simulators", "builtin", True, "part of nkitools", "-m sim"),
                Part("Simulators", "pallas", False, "jax is not installed", "-m sim", "pip install 'nkitools[pallas]'"),
                Part("Packages", "libtpu", False, "not installed", "the compiler", "pip install 'nkitools[tpu-aot]'"),
                Part("Compilers", "C++", False, "no compiler", "operators", "apt-get install g++"),
                Part("Devices", "neuron", False, "no NeuronCore: found no node", "-m hw"),
                Part("Devices", "gpu", False, "no GPU: found no node", "-m hw"),
            ],
            [
                "You can simulate NKI kernels of both dialects.",
                "You cannot check Pallas kernels: jax is not installed (pip install 'nkitools[pallas]').",
                "You cannot compile Pallas kernels for a TPU that is not here: libtpu is not installed "
                "(pip install 'nkitools[tpu-aot]').",
                "You cannot build custom C++ operators, and simulate them: no compiler.",
                "You cannot run tests on a device: no NeuronCore, no GPU.",
            ],
        ),
        (
            [Part("Devices", "gpu", True, "/dev/nvidia0", "-m hw")],
            ["You can run tests on a device: gpu (pytest -m hw)."],
        ),
    ],
)
def test_it_begins_with_a_verdict(monkeypatch: pytest.MonkeyPatch, parts: list[Part], verdict: list[str]) -> None:
    """What can be done here, and what cannot and why; an empty line below."""
    monkeypatch.setattr(examination, "examine", lambda: parts)
    lines = called().stdout.splitlines()
    assert lines[: len(verdict) + 1] == [*verdict, ""]
