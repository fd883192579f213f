"""The pytest plugin `nkitools`: one test of a kernel, run in simulation and on hardware.

It is thin: options (`command_line`), whether the project uses it (`adoption`), the state of the session (`configure`),
the marks and the two variants of a test (`marks`), fixtures (`fixtures`), the runs of a test (`recording`), missing
devices (`devices`), and the output (`summary`, `files`). Loading it imports neither NumPy nor JAX; the first test that
runs a kernel does.
"""

from nkitools.pytest_plugin.adoption import pytest_collect_directory, pytest_pycollect_makemodule
from nkitools.pytest_plugin.command_line import pytest_addoption
from nkitools.pytest_plugin.configure import pytest_collection_finish, pytest_configure, pytest_load_initial_conftests
from nkitools.pytest_plugin.devices import pytest_runtest_call, pytest_runtest_setup
from nkitools.pytest_plugin.fixtures import (
    _nki_target,
    device_prints,
    expect_finding,
    kernel_benchmark,
    kernels_ran,
    nki_case,
    run_kernel,
)  # fmt: skip
from nkitools.pytest_plugin.import_errors import pytest_make_collect_report, pytest_runtest_makereport
from nkitools.pytest_plugin.marks import pytest_generate_tests, pytest_itemcollected, pytest_pycollect_makeitem
from nkitools.pytest_plugin.sweep_mark import pytest_collection_modifyitems, pytest_pyfunc_call

__all__ = [
    "_nki_target", "device_prints", "expect_finding", "kernel_benchmark", "kernels_ran", "nki_case", "pytest_addoption",
    "pytest_collect_directory", "pytest_collection_finish", "pytest_collection_modifyitems", "pytest_configure",
    "pytest_generate_tests", "pytest_itemcollected", "pytest_load_initial_conftests", "pytest_make_collect_report",
    "pytest_pycollect_makeitem", "pytest_pycollect_makemodule", "pytest_pyfunc_call", "pytest_runtest_call",
    "pytest_runtest_makereport", "pytest_runtest_setup", "run_kernel",
]  # fmt: skip
