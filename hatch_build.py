"""The build hook: the wheel gets the example kernels, and type stubs of nki and neuronxcc.nki."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class StubsHook(BuildHookInterface[Any]):
    """Adds examples, ``nki-stubs`` and ``neuronxcc-stubs`` to a wheel; an editable installation has none of them.

    It has the examples in the checkout, and the stubs from the Makefile. Copies of the examples beside it would make
    pytest rewrite the assertions of the checkout's kernels, as of a plugin's package.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the stubs into a folder of their own, and name them to the wheel."""
        if self.target_name != "wheel" or version == "editable":
            return
        sys.path.insert(0, self.root)
        try:
            from nkitools.dialects.stub_files import write_stubs
        finally:
            sys.path.remove(self.root)
        for examples in ("cpp_ops", "kernels"):  # what `nkitools demo` shows, and what authors start from
            build_data["force_include"][str(Path(self.root, examples))] = f"nkitools/examples/{examples}"
        self._folder = tempfile.TemporaryDirectory()
        folder = Path(self._folder.name)
        for path in write_stubs(folder):
            build_data["force_include"][str(path)] = path.relative_to(folder).as_posix()

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the folder."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()
