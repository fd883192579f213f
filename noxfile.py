"""Tests on other versions of Python and of NumPy, where their interpreters are to be had: ``nox``, ``nox --list``."""

import nox

PYTHONS = ("3.11", "3.12", "3.13", "3.14")

nox.options.sessions = ["simulator"]
nox.options.error_on_missing_interpreters = False


@nox.session(python=PYTHONS)
@nox.parametrize("numpy", ["numpy==2.1.*", "numpy"], ids=["oldest", "current"])
def simulator(session: nox.Session, numpy: str) -> None:
    """Run what ``make quick`` runs."""
    if numpy == "numpy==2.1.*" and session.python == "3.14":
        session.skip("NumPy 2.1 has no wheels for Python 3.14")
    groups = nox.project.dependency_groups(nox.project.load_toml("pyproject.toml"), "test")
    session.install(numpy, ".[test]", *groups)
    session.run("pytest", "@tests/quick.txt", "-n", "2", *session.posargs)
