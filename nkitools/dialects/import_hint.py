"""A sentence that tells authors why ``import nki`` fails: the stand-in is not in place.

Light, as `nkitools` imports it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType

ROOTS = frozenset({"nki", "neuronxcc"})
_IMPORT = re.compile(r"^\s*(?:import|from)\s+(?:nki|neuronxcc)\b", re.MULTILINE)
# Who loads the plugin of a pytest session that may have nothing to do with nkitools.
_LOADERS_OF_PLUGINS = ("_pytest", "pluggy", "importlib.metadata", "importlib_metadata")
_PLUGIN = "nkitools.pytest_plugin"


def imports_nki(text: str) -> bool:
    """Return whether the text of a file imports nki or neuronxcc."""
    return _IMPORT.search(text) is not None


def is_import() -> bool:
    """Return whether an import asks the caller, a finder; ``importlib.util.find_spec``, which looks, is none."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
        if frame.f_code.co_name == "_find_and_load_unlocked":
            return True
        frame = frame.f_back
    return False


def is_import_by_a_library() -> bool:
    """Return whether the import that asks the caller, a finder, stands in an installed package."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    folders = frame.f_code.co_filename.split(os.sep) if frame is not None else []
    return "site-packages" in folders or "dist-packages" in folders


class ImportHint:
    """The last finder of modules: Python asks it only after every other finder has failed, and it explains the failure.

    It returns None if no import asks (`importlib.util.find_spec`), as if it were not there.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return None. ModuleNotFoundError with the line to add, where a statement imports AWS's package."""
        if fullname in ROOTS and is_import():
            raise ModuleNotFoundError(
                f"No module named '{fullname}'. nkitools stands in for it after this line, which comes before the "
                "first import of it: import nkitools; nkitools.install_stand_in()",
                name=fullname,
            )
        return None


def explain_failing_imports() -> None:
    """Add the hint, unless it is pytest that imports nkitools, to load its plugin."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if name == _PLUGIN or name.startswith(_LOADERS_OF_PLUGINS):
            return
        if not name.startswith(("nkitools", "importlib")):
            break
        frame = frame.f_back
    if not any(type(finder) is ImportHint for finder in sys.meta_path):
        sys.meta_path.append(ImportHint())
