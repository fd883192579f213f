"""Scripts among the tests: a file that calls kernels when it is run is one test, as ``python FILE`` would run it."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import click
import pytest

from nkitools.field.file_command import command_for, has_kernels
from nkitools.field.outcomes import UncalledKernels


class Script(pytest.Item):
    """A script; it passes if it ends without an exception, or by ``sys.exit`` with exit code 0."""

    def runtest(self) -> None:
        """Run it in its own folder, with that folder first on the path; other tests have theirs."""
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.path.parent)
            patch.syspath_prepend(str(self.path.parent))
            patch.setattr(sys, "argv", [str(self.path)])
            try:
                runpy.run_path(str(self.path), run_name="__main__")
            except SystemExit as ending:
                if ending.code not in (None, 0):
                    raise

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return the place of the script."""
        return self.path, None, "script"


class Uncalled(pytest.Item):
    """A file of kernels that nothing of the folder calls; ``command`` runs one."""

    command = ""

    def runtest(self) -> None:
        """Say how a kernel of it is run."""
        raise UncalledKernels(f"no test and no script calls them; to run one: {self.command}")

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return the place of the file."""
        return self.path, None, "kernels"


class ScriptFile(pytest.File):
    """A Python file without tests that has kernels or calls some."""

    command = ""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the script, or the file's kernels, which nothing calls."""
        if self.command.startswith("nkitools run"):
            yield Script.from_parent(self, name="script")
            return
        kernels = Uncalled.from_parent(self, name="kernels")
        kernels.command = self.command
        yield kernels


def script_in(file: Path, parent: pytest.Collector) -> ScriptFile | None:
    """Return the file as one of kernels without tests, None for all others."""
    if file.suffix != ".py":
        return None
    try:
        is_test = any(fnmatch(file.name, each) for each in parent.config.getini("python_files"))
        command = command_for(file, is_test=is_test)
    except click.UsageError:
        return None
    if not command.startswith("nkitools run") and not (command.startswith("nkitools estimate") and has_kernels(file)):
        return None
    found: ScriptFile = ScriptFile.from_parent(parent, path=file)
    found.command = command
    return found
