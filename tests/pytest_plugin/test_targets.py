"""One test, two targets: which variants there are, what selects them, and what happens without a device."""

from __future__ import annotations

from typing import Any

import pytest

from nkitools.targets import choice, machine, neuron

ONE_TEST = "def test_double(run_kernel):\n    assert run_kernel(double, 4) == 8\n"


def collected(author: Any, *args: str, test: str) -> list[str]:
    """The ids of the tests that pytest would run."""
    result = author.run("--collect-only", "-q", *args, test=test)
    return [line.partition("::")[2] for line in result.outlines if "::" in line]


def test_a_test_of_a_kernel_has_a_variant_for_each_target(author: Any) -> None:
    """[sim] runs on the laptop; [hw] is skipped there, and the reason says what was looked for."""
    result = author.run("-m", "sim or hw", "-rs", "-v", test=ONE_TEST)
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(
        [
            "*test_double?sim? PASSED*",
            "*test_double?hw? SKIPPED*",
            "SKIPPED [[]1] test_it.py*: no NeuronCore: found no device node /dev/neuron* and neither module nki "
            "nor module neuronxcc of AWS's own, nor module torch_neuronx; no TPU: module jax is not installed; "
            "no GPU: module jax is not installed",
        ]
    )


def test_a_laptop_has_no_variant_on_hardware(author: Any) -> None:
    """It is made where -m, -k or a node id names it, where hardware is required, and where a device is named."""
    assert collected(author, test=ONE_TEST) == ["test_double[sim]"]
    for asked in (["-m", "sim or hw"], ["-k", "hw or sim"], ["--nki-require-hw"], ["--nki-target=neuron"]):
        assert collected(author, *asked, test=ONE_TEST) == ["test_double[sim]", "test_double[hw]"]
    assert collected(author, "test_it.py::test_double[hw]", test=ONE_TEST) == ["test_double[hw]"]


@pytest.mark.parametrize(
    ("expression", "ids"),
    [
        ("sim", ["test_double[sim]"]),
        ("simulation", ["test_double[sim]"]),
        ("hw", ["test_double[hw]"]),
        ("not hw", ["test_double[sim]"]),
    ],
)
def test_the_marks_select_the_variants(author: Any, expression: str, ids: list[str]) -> None:
    """-m sim and -m hw each select the variant of their target; simulation is another name of sim."""
    assert collected(author, "-m", expression, test=ONE_TEST) == ids


def test_hw_on_a_laptop_is_skipped_not_deselected(author: Any) -> None:
    """-m hw without a device counts every test, as skipped, and its fixtures are not set up in vain.

    The summary has one reason a target, and the session has not failed.
    """
    result = author.run(
        "-m",
        "hw",
        "-rs",
        test="""

@pytest.fixture
def precious():
    raise SystemExit("set up in vain")

@pytest.mark.parametrize("x", [1, 2])
def test_double(run_kernel, precious, x):
    run_kernel(double, x)
""",
    )
    result.assert_outcomes(skipped=2, deselected=2)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["SKIPPED [[]2] *no NeuronCore: found no *; no TPU: module jax*; no GPU: module jax*"])


@pytest.mark.parametrize("mark", ["sim", "simulation", "hw"])
def test_a_mark_of_the_author_leaves_only_its_target(author: Any, mark: str) -> None:
    """A test marked for one target has no variant for the other, and nothing is reported as deselected."""
    test = f"@pytest.mark.{mark}\n{ONE_TEST}"
    target = "hw" if mark == "hw" else "sim"
    assert collected(author, test=test) == [f"test_double[{target}]"]
    assert "deselected" not in author.run(test=test).stdout.str()


@pytest.mark.parametrize("place", ["pytestmark = pytest.mark.hw", "class TestIt:\n    pytestmark = [pytest.mark.hw]"])
def test_marks_of_a_module_and_of_a_class_count(author: Any, place: str) -> None:
    """A mark holds wherever pytest lets authors put it."""
    body = ONE_TEST if not place.startswith("class") else "    def test_double(self, run_kernel): ..."
    assert [name.partition("[")[2] for name in collected(author, test=f"{place}\n{body}")] == ["hw]"]


def test_a_test_with_both_marks_has_both_variants_each_with_its_own(author: Any) -> None:
    """@sim @hw says what is the case anyway; -m hw still selects one variant."""
    test = f"@pytest.mark.sim\n@pytest.mark.hw\n{ONE_TEST}"
    assert collected(author, test=test) == ["test_double[sim]", "test_double[hw]"]
    assert collected(author, "-m", "hw", test=test) == ["test_double[hw]"]
    assert collected(author, "-m", "sim", test=test) == ["test_double[sim]"]


def test_a_case_of_a_parametrised_test_may_be_for_one_target(author: Any) -> None:
    """The author's own parameters combine with the targets; a mark on a case holds for that case."""
    test = """

@pytest.mark.parametrize("x", [1, pytest.param(4096, marks=pytest.mark.hw, id="big")])
def test_double(run_kernel, x):
    run_kernel(double, x)
"""
    assert collected(author, test=test) == ["test_double[sim-1]", "test_double[hw-1]", "test_double[hw-big]"]


def test_a_test_may_ask_through_its_fixtures(author: Any) -> None:
    """A fixture that runs a kernel gives its tests the variants, and is computed anew for each target."""
    result = author.run(
        "-v",
        "-m",
        "sim or hw",
        test="""

@pytest.fixture(scope="module")
def doubled(run_kernel):
    return run_kernel(double, 4)

def test_one(doubled):
    assert doubled == 8

def test_other(doubled):
    assert doubled == 8
""",
    )
    result.assert_outcomes(passed=2, skipped=2)
    result.stdout.fnmatch_lines(["*test_one?sim? PASSED*", "*test_other?sim? PASSED*", "*test_one?hw? SKIPPED*"])


def test_other_tests_stay_as_they_are(author: Any) -> None:
    """A test that runs no kernel has no variants, and device_prints alone makes none."""
    test = "def test_plain(): pass\ndef test_prints(device_prints): assert not device_prints\n"
    assert collected(author, test=test) == ["test_plain", "test_prints"]
    author.run("--strict", test=test).assert_outcomes(passed=2)


def test_a_marked_test_without_fixtures_is_treated_alike_where_marks_are_ours(author: Any) -> None:
    """simulation is selected by -m sim, and a hw test is skipped without a device, run_kernel or not."""
    ours = "-o", "nki_marks=true"
    test = """

@pytest.mark.simulation
def test_in_simulation(): pass

@pytest.mark.hw
def test_on_hardware(): raise SystemExit("no device, yet it ran")
"""
    author.run("-m", "sim", *ours, test=test).assert_outcomes(passed=1, deselected=1)
    author.run("-m", "hw", *ours, test=test).assert_outcomes(skipped=1, deselected=1)


def test_hardware_can_be_required(author: Any) -> None:
    """--nki-require-hw fails what would be skipped, with the same reason, so that a green run is not an empty one."""
    test = f"{ONE_TEST}\n@pytest.mark.hw\ndef test_on_hardware(): pass\n"
    result = author.run("-m", "hw", "--nki-require-hw", "-o", "nki_marks=true", test=test)
    result.assert_outcomes(failed=2, deselected=1)
    result.stdout.fnmatch_lines(["*hardware is required (--nki-require-hw): no NeuronCore: found no device node*"])
    assert result.ret == pytest.ExitCode.TESTS_FAILED


@pytest.fixture
def neuron_only(author: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with a NeuronCore and without a TPU, where the functions that are called for_tpu are JAX's."""
    monkeypatch.setattr(machine, "nodes", lambda *patterns: ("/dev/neuron0",) if "neuron" in patterns[0] else ())
    monkeypatch.setenv("NKITOOLS_ISOLATE", "none")  # another process would not be patched
    monkeypatch.setattr(neuron, "neuron_packages", lambda: ("neuronxcc",))
    monkeypatch.setattr(choice, "is_jax_function", lambda kernel: kernel.__name__ == "for_tpu")


@pytest.mark.usefixtures("neuron_only")
def test_the_kernel_decides_which_device_is_missing(author: Any) -> None:
    """With a NeuronCore but no TPU, the test of a JAX function is skipped when it runs it, for want of a TPU."""
    test = """
def for_tpu(run, x): ...

def test_tpu(run_kernel):
    run_kernel(for_tpu, 1)
"""
    result = author.run("-m", "hw", "-rs", test=test)
    result.assert_outcomes(skipped=1, deselected=1)
    result.stdout.fnmatch_lines(["SKIPPED [[]1] test_it.py:*: no TPU: module jax is not installed; no GPU*"])


def test_the_marks_are_registered(author: Any) -> None:
    """pytest --markers explains each of them, where a test asks for a fixture of ours."""
    author.run("--markers", test=ONE_TEST).stdout.fnmatch_lines(
        [
            "@pytest.mark.sim: *simulation*",
            "@pytest.mark.simulation: another name of sim",
            "@pytest.mark.hw(device, ...): *hardware*",
        ]
    )
