"""The build hook: the wheel gets type stubs of nki and neuronxcc.nki, written from what the stand-in serves."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class StubsHook(BuildHookInterface[Any]):
    """Adds ``nki-stubs`` and ``neuronxcc-stubs`` to a wheel; an editable installation gets them from the Makefile."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the stubs into a folder of their own, and name them to the wheel."""
        if self.target_name != "wheel" or version == "editable":
            return
        sys.path.insert(0, self.root)
        try:
            from nkitools.dialects.stub_files import write_stubs
        finally:
            sys.path.remove(self.root)
        self._folder = tempfile.TemporaryDirectory()
        folder = Path(self._folder.name)
        for path in write_stubs(folder):
            build_data["force_include"][str(path)] = path.relative_to(folder).as_posix()

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the folder."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()
