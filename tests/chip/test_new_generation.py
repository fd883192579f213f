"""A chip that does not exist yet is one table in one file: everything that lists or asks chips has it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nkitools.facts import generations

pytestmark = pytest.mark.process

REPOSITORY = Path(__file__).parents[2]
KIB = 1024

# What stands in the place of the last lines that name the generations: a copy of v4 with other names and two limits.
TABLE = """\
V5 = replace(
    V4,
    name="NeuronCore-v5",
    version=5,
    chips=("trn4", "gen5"),
    sbuf_partition_bytes=320 * KIB,
    moving_fmax_float32=2048,
)

TABLES = (V2, V3, V4, V5)
"""
# The edited file takes the place of the package's own before anything else is imported.
PRELOAD = """\
import importlib.util, sys
spec = importlib.util.spec_from_file_location("nkitools.facts.generations", {file!r})
sys.modules[spec.name] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules[spec.name])
"""
QUESTIONS = """\
import json
import numpy as np
from click.testing import CliRunner
import nkitools
nkitools.install_stand_in(prefer="builtin")
import nki, nki.isa as nisa, nki.language as nl
import neuronxcc.nki.isa as legacy
from docs.generate_chips import chip_page
from docs.generate_options import option_page
from nkitools.chip.chosen_chip import resolve_chip
from nkitools.cli import main
from nkitools.rules.catalogue import RULES
from nkitools.targets.timing import peaks_of

def wide(moving, columns):
    a, b = (nl.ndarray((128, size), nl.float32, buffer=nl.sbuf) for size in (128, columns))
    nisa.memset(dst=a, value=1.0)
    nisa.dma_copy(dst=b, src=moving)
    product = nl.ndarray((128, columns), nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=product, stationary=a, moving=b)
    out = nl.ndarray((128, columns), nl.float32, buffer=nl.shared_hbm)
    copied = nl.ndarray((128, columns), nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=copied, src=product)
    nisa.dma_copy(dst=out, src=copied)
    return out

def full(moving, columns):
    tile = nl.ndarray((128, columns), nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=moving)
    out = nl.ndarray((128, columns), nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out

def random():
    out = nl.ndarray((4, 4), nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray((4, 4), nl.float32, buffer=nl.sbuf)
    nisa.rand2(dst=tile, min=0.0, max=1.0)
    nisa.dma_copy(dst=out, src=tile)
    return out

def findings(kernel, chip, *columns):
    arrays = [np.ones((128, size), np.float32) for size in columns]
    run = nkitools.simulate(kernel, *arrays, *columns, chip=chip, rules="report")
    return [[found.rule, found.message] for found in run.findings if found.severity == "error"]

seen = []
nkitools.simulate(lambda: seen.append((nisa.get_nc_version(), legacy.get_nc_version, nl.tile_size.sbuf_size_bytes)))
cli = CliRunner()
print(json.dumps({
    "chosen": resolve_chip(),
    "version": [seen[0][0].name, seen[0][0].value, seen[0][0] > nisa.nc_version.gen4],
    "same": nisa.get_nc_version() is seen[0][0],
    "legacy": legacy.get_nc_version().name,
    "legacy_names": [each.name for each in legacy.nc_version],
    "sbuf": seen[0][2],
    "wide": {chip: findings(wide, chip, 512 * 3) for chip in ("trn2", "trn3", "trn4")},
    "too_wide": {chip: findings(wide, chip, 4096) for chip in ("trn3", "trn4")},
    "full": {chip: findings(full, chip, 70 * 1024) for chip in ("trn3", "trn4")},
    "random": {chip: findings(random, chip) for chip in ("trn2", "gen5")},
    "explained": cli.invoke(main, ["explain", "NK101"]).output,
    "of_older_chips": [RULES["NK106"].chips, RULES["NK606"].chips, RULES["CO101"].chips],
    "run_help": cli.invoke(main, ["run", "--help"]).output,
    "docs": [chip_page(), option_page()],
    "peaks": peaks_of("trn4").bytes_per_second,
}))
"""


@pytest.fixture(scope="module")
def preload(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Code that gives a process the imaginary chip; everything else there is the package as it is."""
    source = Path(generations.__file__).read_text()
    lines = [line for line in source.splitlines() if line.startswith("TABLES = ")]
    assert len(lines) == 1
    file = tmp_path_factory.mktemp("chips") / "generations.py"
    file.write_text(source.replace(f"{lines[0]}\n", TABLE))
    return PRELOAD.format(file=str(file))


@pytest.fixture(scope="module")
def answers(preload: str) -> dict[str, Any]:
    """Return the answers of a process about the imaginary chip, which its environment chooses."""
    done = python(preload + QUESTIONS, NEURON_PLATFORM_TARGET_OVERRIDE="trn4")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def python(code: str, cwd: Path = REPOSITORY, **variables: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NKI", "NEURON"))}
    environment = {**kept, "PYTHONPATH": path, **variables}
    return subprocess.run([sys.executable, "-c", code], cwd=cwd, env=environment, capture_output=True, text=True)


def test_the_environment_chooses_it(answers: dict[str, Any]) -> None:
    """AWS's own variable takes the new name."""
    assert answers["chosen"] == "trn4"


def test_its_version_has_a_name_in_both_dialects(answers: dict[str, Any]) -> None:
    """get_nc_version is a member of nc_version, greater than the others, inside a kernel and outside."""
    assert answers["version"] == ["gen5", 5, True]
    assert answers["same"] is True
    assert answers["legacy"] == "gen5"
    assert answers["legacy_names"] == ["gen2", "gen3"]


def test_kernels_run_within_its_limits(answers: dict[str, Any]) -> None:
    """The two limits that were changed decide, and what it has of v4 works."""
    assert answers["sbuf"] == 128 * 320 * KIB
    assert [bool(answers["wide"][chip]) for chip in ("trn2", "trn3", "trn4")] == [True, False, False]
    assert answers["too_wide"]["trn3"] == []
    assert "2048" in answers["too_wide"]["trn4"][0][1]
    assert [bool(answers["full"][chip]) for chip in ("trn3", "trn4")] == [True, False]
    assert answers["random"]["gen5"] == []
    assert answers["random"]["trn2"] == [
        ["NK606", "rand2: rand2 came with NeuronCore-v4; NeuronCore-v3 does not have it; nisa.rng is there"]
    ]


def test_rules_and_options_know_it(answers: dict[str, Any]) -> None:
    """A rule for all chips holds for it; one that is about what older chips lack does not."""
    assert "trn1 inf2 trn2 trn3 trn4" in answers["explained"]
    assert answers["of_older_chips"] == [["trn1", "inf2", "trn2"], ["trn1", "inf2", "trn2"], ["trn1", "inf2"]]
    assert "trn4" in answers["run_help"]
    assert "gen5" in answers["run_help"]


def test_the_docs_have_it(answers: dict[str, Any]) -> None:
    """A row of names, a column of limits, and a choice of the option."""
    chips, options = answers["docs"]
    assert "| `trn4` | `gen5` | NeuronCore-v5 |" in chips
    assert "| `sbuf_partition_bytes` | bytes of one partition of SBUF | 196608 | 229376 | 262144 | 327680 |" in chips
    assert "`trn3`, `trn4`, `gen2`, `gen3`, `gen4`, `gen5`" in options
    assert answers["peaks"] == 8 * 600e9


def test_the_pytest_option_takes_it(preload: str, tmp_path: Path) -> None:
    """``--nki-chip=trn4`` runs kernels on it, and a name of no chip is refused with the new one among the choices."""
    (tmp_path / "test_it.py").write_text(
        "import nki.isa as nisa\n\n"
        "def test_it(run_kernel):\n    assert run_kernel(lambda: nisa.get_nc_version().name) is not None\n"
        "    assert run_kernel.run.chip == 'trn4'\n"
    )
    session = "import pytest\nsys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', '--nki-chip=%s']))"
    done = python(preload + session % "trn4", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
    refused = python(preload + session % "trn5", cwd=tmp_path)
    assert refused.returncode == 4
    assert "trn4" in refused.stderr
