"""nki.jit's compile_config and specialization_config, and the LNC degree of a launch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkitools
import nkitools.dialects.modern as nki
import nkitools.dialects.modern.language as nl
from nkitools.dialects.modern import compiler
from nkitools.facts import options
from nkitools.rules.finding import Finding, KernelError
from tests.lint.linted import findings
from tests.nki_versions import SINCE_0_7

pytestmark = SINCE_0_7

X = np.arange(256, dtype=np.float32).reshape(128, 2)
VARIABLE = "NEURON_LOGICAL_NC_CONFIG"


def doubled(x: Any) -> Any:
    """Return twice its argument."""
    out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
    nl.store(out, nl.multiply(nl.load(x), 2))
    return out


def cores(x: Any) -> Any:
    """Return the number of programs, as each of them sees it."""
    out = nl.ndarray((2, 1), nl.float32, nl.shared_hbm)
    core = nl.program_id(0)
    nl.store(out[nl.ds(core, 1)], nl.full((1, 1), nl.num_programs(), nl.float32, nl.sbuf))
    if nl.num_programs() == 1:
        nl.store(out[1:2], nl.full((1, 1), 0, nl.float32, nl.sbuf))
    return out


def refusal(call: Any) -> Finding:
    """Return why a call is refused."""
    with pytest.raises(KernelError) as raised:
        call()
    return raised.value.finding


# --- the classes ------------------------------------------------------------------------------------------------------


def test_the_defaults_are_the_documented_ones() -> None:
    """Three of a page; the others are off, and equal configurations are equal."""
    config = compiler.CompileConfig()
    assert (config.address_rotation, config.prefetch_auto, config.nki_alloc_fallback) == (
        compiler.AddressRotation.AUTO, False, True,
    )  # fmt: skip
    assert (config.non_ssa_legalization, config.dead_code_elim, config.barrier_check) == (False, False, False)
    assert [each.name for each in compiler.AddressRotation] == ["AUTO", "ENABLE", "DISABLE"]
    assert config == compiler.CompileConfig(dead_code_elim=False) != compiler.CompileConfig(dead_code_elim=True)
    assert not compiler.SpecializationConfig().allow_nested_config_override


@pytest.mark.parametrize(
    ("name", "value"),
    [("non_ssa_legalization", 1), ("barrier_check", None), ("address_rotation", True), ("address_rotation", "auto")],
)
def test_a_wrong_value_is_refused(name: str, value: Any) -> None:
    """NK609 names the field."""
    found = refusal(lambda: compiler.CompileConfig(**{name: value}))
    assert (found.rule, f"CompileConfig: {name} must be" in found.message) == ("NK609", True)


def test_wrong_configurations_of_jit_are_refused() -> None:
    """NK609: something else than a configuration, and the one in the place of the other."""
    for name, value in (("compile_config", {}), ("specialization_config", compiler.CompileConfig())):
        found = refusal(lambda n=name, v=value: nki.jit(doubled, **{n: v}))
        assert (found.rule, f"nki.jit: {name} must be" in found.message) == ("NK609", True)


# --- one kernel -------------------------------------------------------------------------------------------------------

HARMLESS: list[dict[str, Any]] = [
    {"address_rotation": compiler.AddressRotation.ENABLE},
    {"dead_code_elim": True, "barrier_check": True},
    {"prefetch_auto": True},
    {"nki_alloc_fallback": False},
]


@pytest.mark.parametrize("fields", HARMLESS, ids=str)
def test_options_of_the_compiler_change_nothing(fields: dict[str, Any]) -> None:
    """Result and findings are those of the kernel without."""
    run = nkitools.simulate(nki.jit(doubled, compile_config=compiler.CompileConfig(**fields)), X)
    np.testing.assert_array_equal(run.outputs, 2 * X)
    assert list(run.findings) == []


def test_non_ssa_legalization_runs_with_a_hint() -> None:
    """NK621 at the kernel's first line, with the plain result."""
    kernel = nki.jit(compile_config=compiler.CompileConfig(non_ssa_legalization=True))(doubled)
    run = nkitools.simulate(kernel, X)
    np.testing.assert_array_equal(run.outputs, 2 * X)
    (found,) = run.findings
    assert (found.rule, found.severity, found.line) == ("NK621", "hint", doubled.__code__.co_firstlineno)


def test_prefetch_auto_excludes_a_ring_of_one_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """NK609 where the environment has one; without the option the variable is no matter."""
    monkeypatch.setenv("NKI_PREFETCH_RING_SIZE", "4")
    np.testing.assert_array_equal(nki.jit(doubled)(X), 2 * X)
    kernel = nki.jit(doubled, compile_config=compiler.CompileConfig(prefetch_auto=True))
    assert refusal(lambda: kernel(X)).rule == "NK609"


def test_0_6_has_no_configuration(tmp_path: Path) -> None:
    """NK609 by the decorator, by a launch and by lint."""
    kernel, source = nki.jit(doubled, compile_config=compiler.CompileConfig()), tmp_path / "kernel.py"
    source.write_text("import nki\n\n\n@nki.jit(compile_config=None)\ndef kernel(x):\n    return x\n")
    launched = refusal(lambda: nkitools.simulate(kernel, X, nki_version="0.6"))
    with options.override(nki_version="0.6"):
        decorated = refusal(lambda: nki.jit(doubled, specialization_config=None))
        linted = findings(source)
    for found in (launched, decorated, *linted):
        assert (found.rule, "is public since NKI 0.7; this is NKI 0.6" in found.message) == ("NK609", True)
    assert len(linted) == 1


# --- nested kernels ---------------------------------------------------------------------------------------------------

PLAIN, OTHER = compiler.CompileConfig(), compiler.CompileConfig(barrier_check=True)


def nested(outer: Any, inner: Any, *, allows: bool = False) -> Any:
    """Run a kernel of one configuration inside a kernel of another one."""
    called = nki.jit(doubled, compile_config=inner)
    special = compiler.SpecializationConfig(allow_nested_config_override=allows)

    @nki.jit(compile_config=outer, specialization_config=special)
    def calls(x: Any) -> Any:
        return called(x)

    return nkitools.simulate(calls, X)


@pytest.mark.parametrize(
    ("outer", "inner"), [(None, None), (None, PLAIN), (PLAIN, None), (OTHER, None), (OTHER, OTHER)]
)
def test_nested_kernels_that_agree(outer: Any, inner: Any) -> None:
    """A kernel without a configuration disagrees with none, and an outermost kernel without one has the defaults."""
    run = nested(outer, inner)
    np.testing.assert_array_equal(run.outputs, 2 * X)
    assert list(run.findings) == []


@pytest.mark.parametrize(("outer", "inner"), [(None, OTHER), (PLAIN, OTHER), (OTHER, PLAIN)])
def test_nested_kernels_that_disagree(outer: Any, inner: Any) -> None:
    """NK610 names the field; a warning where the outermost kernel allows it, whose configuration holds."""
    found = refusal(lambda: nested(outer, inner))
    assert (found.rule, found.severity) == ("NK610", "error")
    assert f"the CompileConfig barrier_check={inner.barrier_check}" in found.message
    run = nested(outer, inner, allows=True)
    np.testing.assert_array_equal(run.outputs, 2 * X)
    assert [(each.rule, each.severity) for each in run.findings] == [("NK610", "warning")]


# --- the LNC degree ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("variable", "degree"), [(None, 1), ("", 1), ("1", 1), ("2", 2)])
def test_the_environment_says_the_degree(variable: str | None, degree: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of launches without brackets, of kernels and plain functions; before NKI 0.7 it is 1."""
    monkeypatch.delenv(VARIABLE, raising=False)
    if variable is not None:
        monkeypatch.setenv(VARIABLE, variable)
    expected = [[degree], [degree if degree == 2 else 0]]
    np.testing.assert_array_equal(nki.jit(cores)(X), expected)
    for kernel in (cores, nki.jit(cores)):
        run = nkitools.simulate(kernel, X)
        np.testing.assert_array_equal(run.outputs, expected)
        assert run.settings["grid"] == ([2] if degree == 2 else [])
        assert nkitools.simulate(kernel, X, nki_version="0.6").outputs.tolist() == [[1], [0]]


@pytest.mark.parametrize("variable", [None, "1", "2"])
@pytest.mark.parametrize("brackets", [1, 2])
def test_brackets_decide(brackets: int, variable: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the variable says another degree, NK613 is a warning with the code of AWS's compiler."""
    monkeypatch.delenv(VARIABLE, raising=False)
    if variable is not None:
        monkeypatch.setenv(VARIABLE, variable)
    runs = [nkitools.simulate(nki.jit(cores)[brackets], X), nkitools.simulate(cores, X, grid=brackets)]
    for run in runs:
        assert run.outputs.tolist() == [[brackets], [brackets if brackets == 2 else 0]]
        agrees = variable in (None, str(brackets))
        assert [(each.rule, each.severity) for each in run.findings] == ([] if agrees else [("NK613", "warning")])
        assert all("NCC_EVRF066" in each.message for each in run.findings)


def test_another_degree_of_the_environment_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """NK613, an error: it is 1 or 2."""
    monkeypatch.setenv(VARIABLE, "4")
    found = refusal(lambda: nki.jit(cores)(X))
    assert (found.rule, found.message) == ("NK613", f"{VARIABLE} is '4'; the LNC degree is 1 or 2")


def test_a_nested_kernel_may_say_degree_1() -> None:
    """``kernel[1]`` inside of a kernel is inlined as ever; ``kernel[2]`` is NK610."""
    one, two = nki.jit(doubled)[1], nki.jit(doubled)[2]
    np.testing.assert_array_equal(nkitools.simulate(lambda x: one(x), X).outputs, 2 * X)
    assert refusal(lambda: nkitools.simulate(lambda x: two(x), X)).rule == "NK610"
