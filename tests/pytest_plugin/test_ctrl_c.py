"""Ctrl-C in a kernel of a test."""

from __future__ import annotations

import pytest

from tests.pytest_plugin.conftest import NKI, Author

KERNEL = """
import nkitools

names = {}
exec(compile("def pressed():\\n    raise KeyboardInterrupt", nkitools.__file__, "exec"), names)

@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    names["pressed"]()  # as in the middle of an instruction
    return out

def test_before(run_kernel):
    run_kernel(double, X)

def test_it(run_kernel):
    run_kernel(kernel, X)
"""


def test_the_place_is_that_of_the_kernel(bare_author: Author) -> None:
    """It was a line of nkitools; what ran before is counted."""
    bare_author.write(test_it=NKI + KERNEL)
    result = bare_author.pytester.runpytest_inprocess(
        "-p", "no:cacheprovider", "-p", "no:randomly", no_reraise_ctrlc=True
    )
    assert result.ret == pytest.ExitCode.INTERRUPTED
    line = (NKI + KERNEL).splitlines().index('    names["pressed"]()  # as in the middle of an instruction')
    result.stdout.fnmatch_lines([f"*test_it.py:{line}: KeyboardInterrupt"])
    result.stdout.no_fnmatch_line("*nkitools/__init__.py*")
