"""What tests of instructions share: the NKI version of a whole module's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nkitools.facts import options, versions


@pytest.fixture(scope="module", params=versions.versions_of())
def each_version(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let each NKI version hold for the tests of a module; a test that names a version gets that one."""
    with options.override(nki_version=request.param):
        yield
