"""A file as a module, outside of `sys.modules`."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any


def loaded(path: Path, name: str = "") -> Any:
    """Execute a file as a module of its own, called as the file is by default."""
    spec = importlib.util.spec_from_file_location(name or path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
