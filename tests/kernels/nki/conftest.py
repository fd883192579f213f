"""Every test of a modern kernel runs under each NKI version."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nkitools.facts import options, versions


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test for each version; a module says in ``VERSIONS`` where its kernels are for one of them alone."""
    if metafunc.definition.path.parent.name != "legacy":
        chosen = getattr(metafunc.module, "VERSIONS", versions.versions_of())
        metafunc.parametrize("nki_version", chosen, indirect=True)


@pytest.fixture(autouse=True)
def nki_version(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let the version of the test hold; the legacy dialect has one."""
    with options.override(nki_version=getattr(request, "param", "auto")):
        yield
