"""The package as users import it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import nkitools
from nkitools.launch.simulate import simulate
from nkitools.rules.finding import KernelError


@pytest.mark.parametrize("name", nkitools.__all__)
def test_every_public_name_is_there(name: str) -> None:
    """By attribute and in dir(), whether it was asked for before or not."""
    assert getattr(nkitools, name) is not None
    assert name in dir(nkitools)


def test_names_are_the_rooms_own() -> None:
    """Imported when they are first asked for, and the same from then on."""
    assert nkitools.simulate is simulate
    assert nkitools.KernelError is KernelError
    assert nkitools.simulate is nkitools.simulate


@pytest.mark.process
def test_its_rooms_need_no_import_of_their_own() -> None:
    """`import nkitools` alone is enough for `nkitools.pallas.check`, and looking there imports no JAX."""
    program = (
        "import sys, nkitools\n"
        "rooms = (nkitools.customop, nkitools.mx, nkitools.pallas, nkitools.strategies)\n"
        "print([room.__name__ for room in rooms], 'jax' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    names = ["nkitools.customop", "nkitools.mx", "nkitools.pallas", "nkitools.strategies"]
    assert done.stdout == f"{names} False\n"


def test_an_unknown_name_is_an_attribute_error() -> None:
    """In Python's words."""
    with pytest.raises(AttributeError, match="module 'nkitools' has no attribute 'simulat'"):
        _ = nkitools.simulat  # type: ignore[attr-defined]


@pytest.mark.process
def test_importing_it_imports_nothing_heavy() -> None:
    """Nor does asking what it has."""
    program = (
        "import sys, nkitools\n"
        "names = dir(nkitools)\n"
        "print(sorted({'numpy', 'ml_dtypes', 'scipy', 'jax', 'torch', 'rich', 'click'} & set(sys.modules)))\n"
        "print('simulate' in names)"
    )
    package = Path(nkitools.__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=package)
    assert done.stdout.split("\n")[:2] == ["[]", "True"]


@pytest.mark.process
def test_a_notebook_loads_and_unloads_the_stand_in() -> None:
    """As an extension of IPython: `import nki` works from there on, and no longer after it was unloaded."""
    program = (
        "import sys, nkitools\n"
        "from types import SimpleNamespace\n"
        "html = type('', (dict,), {'for_type': dict.__setitem__})()\n"
        "shell = SimpleNamespace(display_formatter=SimpleNamespace(formatters={'text/html': html}))\n"
        "nkitools.load_ipython_extension(shell)\n"
        "import nki\n"
        "nkitools.unload_ipython_extension(shell)\n"
        "print(nki.__name__, 'nki' in sys.modules)"
    )
    package = Path(nkitools.__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=package)
    assert done.stdout.split() == ["nki", "False"]
