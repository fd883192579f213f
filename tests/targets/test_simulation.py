"""The builtin simulator as a target, and whose `nki` a kernel file imports."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from nkitools.dialects import stand_in as installation
from nkitools.targets import builtin, imports
from nkitools.targets.builtin import BuiltinSimulator, is_jax_function


def test_a_kernel_runs_with_the_keywords_of_simulate() -> None:
    """A plain function is a kernel of the modern dialect; chip goes to the simulator, its outputs come back."""

    def kernel(x: Any) -> Any:
        return x

    x = np.ones((4, 4), np.float32)
    run = BuiltinSimulator().run(kernel, x, chip="trn1", rules="off")
    assert (run.kernel, run.chip, BuiltinSimulator().available().ok) == ("kernel", "trn1", True)
    np.testing.assert_array_equal(run.outputs, x)


def test_a_jax_function_goes_to_the_pallas_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """With all of its arguments."""
    import nkitools.pallas

    monkeypatch.setattr(builtin, "is_jax_function", lambda kernel: True)
    monkeypatch.setattr(nkitools.pallas, "check_as_asked", lambda *args, **kwargs: (args, kwargs), raising=False)
    assert BuiltinSimulator().run(len, 1, key=2) == ((len, 1), {"key": 2})


@pytest.mark.process
def test_nothing_is_a_jax_function_where_jax_is_not_loaded() -> None:
    """Asking does not load it."""
    code = "import sys; from nkitools.targets.builtin import is_jax_function as i; print(i(len), 'jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"
    assert not is_jax_function(len)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A stand-in that only notes what becomes of it."""
    noted = SimpleNamespace(state=None, calls=[])

    def install(prefer: str) -> None:
        noted.state = prefer
        noted.calls.append(prefer)

    def remove() -> None:
        noted.state = None
        noted.calls.append("removed")

    monkeypatch.setattr(imports, "install_stand_in", install)
    monkeypatch.setattr(imports, "remove_stand_in", remove)
    monkeypatch.setattr(imports, "stand_in_installed", lambda: noted.state is not None)
    return noted


@pytest.mark.parametrize(
    ("policy", "calls"), [("auto", ["auto", "removed"]), ("always", ["builtin", "removed"]), ("never", [])]
)
def test_the_policy_is_carried_out_and_undone(installed: SimpleNamespace, policy: str, calls: list[str]) -> None:
    """Also when the body fails."""
    with pytest.raises(KeyError), imports.stand_in(policy):
        raise KeyError
    assert installed.calls == calls


def test_one_that_is_installed_already_stays(installed: SimpleNamespace) -> None:
    """It belongs to a session round this one, which will remove it."""
    with imports.stand_in("auto"), imports.stand_in("always"):
        assert installed.calls == ["auto"]
    assert installed.calls == ["auto", "removed"]


def test_these_are_the_functions_of_the_stand_in() -> None:
    """What the other tests replace is the real thing."""
    assert imports.install_stand_in is installation.install_stand_in
    assert imports.remove_stand_in is installation.remove_stand_in
