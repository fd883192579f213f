"""Which functions are taken for JAX functions, without running them."""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest

from nkitools.pallas import is_pallas_function

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")
pl = pytest.importorskip("jax.experimental.pallas")

REPOSITORY = Path(__file__).parents[2]


def doubled(x: Any) -> Any:
    return jnp.add(x, x)


def calls_doubled(x: Any) -> Any:
    return doubled(x)


def imports_inside(x: Any) -> Any:
    from jax.experimental import pallas

    return pallas.cdiv(x, 2)


def around(kernel: Any) -> Any:
    def wrapper(x: Any) -> Any:
        return kernel(x)

    return wrapper


class Layer:
    """A callable object of the author's with a method."""

    def __call__(self, x: Any) -> Any:
        return self.double(x)

    def double(self, x: Any) -> Any:
        return jnp.add(x, x)


JITTED = jax.jit(doubled)


@pytest.mark.parametrize(
    "fn",
    [
        doubled,
        JITTED,
        jax.jit(np.add),
        functools.partial(functools.partial(JITTED), 1),
        functools.partial(doubled),
        calls_doubled,
        imports_inside,
        around(JITTED),
        around(doubled),
        lambda x: JITTED(x),
        jax.vmap(np.add),
        jax.custom_vjp(np.add),
        jnp.add,
        Layer().double,
    ],
)
def test_jax_functions_are_recognised(fn: Any) -> None:
    """JAX's own objects, and functions that name JAX or lead to one that does."""
    assert is_pallas_function(fn) is True


def test_functions_of_an_imported_module_are_followed() -> None:
    """A test that calls `module.kernel(x)` is a JAX function when that kernel is."""
    module = ModuleType("kernels_of_an_author")
    module.kernel = doubled  # type: ignore[attr-defined]
    fn = FunctionType((lambda x: kernels.kernel(x)).__code__, {"kernels": module})  # type: ignore[name-defined]  # noqa: F821
    assert is_pallas_function(fn)


def add_one(x: Any) -> Any:
    return np.add(x, 1)


def calls_itself(x: Any) -> Any:
    return calls_itself(x - 1) if x else add_one(x)


def calls_nkitools(x: Any) -> Any:
    return is_pallas_function(x)


def unassigned_closure() -> Any:
    def early(x: Any) -> Any:
        return later(x)

    answer = is_pallas_function(early)
    later = doubled
    return answer


@pytest.mark.parametrize(
    "fn",
    [add_one, calls_itself, calls_nkitools, np.add, functools.partial(add_one), len, dict, object(), 3, None, "jax"],
)
def test_other_things_are_not(fn: Any) -> None:
    """NumPy functions, nkitools' own, and what is no function; also beside JAX in one module, as here."""
    assert is_pallas_function(fn) is False


def test_a_name_without_a_value_is_no_reference() -> None:
    """A closure that is not filled yet says nothing."""
    assert unassigned_closure() is False


def test_looking_imports_neither_jax_nor_numpy() -> None:
    """The pytest plugin asks for every kernel, in sessions that have nothing to do with JAX."""
    code = (
        "import sys; from nkitools.pallas import is_pallas_function\n"
        "def f(x):\n    import jax.numpy as jnp\n    return jnp.add(x, x)\n"
        "assert is_pallas_function(f) and not is_pallas_function(len)\n"
        "print(sorted({'jax', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPOSITORY)
    assert done.stdout.strip() == "[]"
