"""The tables for hardware: ready to run on a (fake) device, and on a laptop skipped with the reason."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from tests.cases import FULL
from tests.fakes import machines
from tests.kernels.reference import boxes, giou_reference

REPOSITORY = Path(__file__).parents[2]

missing = [name for name in ("torch", "jax") if find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(missing), reason=f"{' and '.join(missing)} is not installed")


def outcome_of(root: Path, packages: tuple[str, ...], *arguments: str) -> subprocess.CompletedProcess[str]:
    """pytest of a user on the machine with that root."""
    theirs = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "NKITOOLS_", "NEURON_"))
    }
    theirs |= {"NKITOOLS_SYSROOT": str(root), "PYTHONPATH": machines.packages(*packages), "TMPDIR": str(root)}
    command = [sys.executable, "-m", "pytest", "-m", "hw", "-rs", "-p", "no:cacheprovider", "benchmarks/hw", *arguments]
    return subprocess.run(command, cwd=REPOSITORY, env=theirs, capture_output=True, text=True, check=False)


@pytest.mark.process
def test_on_a_laptop_they_are_skipped_with_the_reason(tmp_path: Path) -> None:
    """Each is collected, and says what was looked for."""
    done = outcome_of(tmp_path, ())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "9 skipped" in done.stdout
    reasons = [line for line in done.stdout.splitlines() if line.startswith("SKIPPED")]
    assert ["no NeuronCore: found no device node" in line for line in reasons] == [True, True]


@pytest.mark.parametrize("baseline", ["torch_xla", "jax_xla"])
def test_the_baselines_compute_what_the_kernels_do(baseline: str) -> None:
    """The frameworks' own operations give GIoU, so that their times can be compared."""
    from benchmarks.hw import test_giou

    preds, targets = (batch[:3] for batch in boxes())
    given = [import_module("torch").from_numpy(each) for each in (preds, targets)]
    scores = getattr(test_giou, baseline)()(*(given if baseline == "torch_xla" else (preds, targets)))
    np.testing.assert_allclose(np.asarray(scores), giou_reference(preds, targets), rtol=0, atol=test_giou.TOLERANCE)


@pytest.mark.process
@pytest.mark.soak
def test_on_devices_there_is_a_table_of_each(tmp_path: Path) -> None:
    """On a NeuronCore the operators and their baselines are right and measured; `test_one_file` has other kernels."""
    machines.neuron_root(tmp_path / "root")
    told = ("--benchmark-json", str(tmp_path / "out.json"), "--benchmark-min-rounds=1", "--benchmark-max-time=0.01")
    stages = ["torch", "element", "tcm", "multicore"] if FULL else ["torch", "multicore"]
    told = (*told, "-k", f"cpp or torch_xla or {' or '.join(f'hw-{stage}' for stage in stages)}")
    done = outcome_of(tmp_path / "root", ("aws", "torch"), *told)
    assert done.returncode == 0, done.stdout + done.stderr
    measured = json.loads((tmp_path / "out.json").read_text())["benchmarks"]
    giou, mlp = ([one for one in measured if one["group"] == group] for group in ("giou", "mlp"))
    assert [one["extra_info"]["target"] for one in giou] == ["neuron", "neuron"]
    assert [one["params"]["relu"] for one in mlp] == stages
    assert all(one["extra_info"]["batches_per_second"] > 0 for one in mlp)
