"""The software bill of materials: the built files, and what the package needs, in CycloneDX 1.6 (JSON)."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

_NAME = re.compile(r"[A-Za-z0-9._-]+")


def bill_of_materials(files: Sequence[Path], epoch: int) -> str:
    """Return the text: components are the packages of this environment that nkitools needs, directly or by another."""
    own = distribution("nkitools")
    needed = {each.name.lower(): each for each in _needed(own)}
    plain: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch, UTC).isoformat().replace("+00:00", "Z"),
            "component": {**_component(own), "type": "library", "components": [_file(path) for path in files]},
        },
        "components": [_component(needed[name]) for name in sorted(needed)],
        "dependencies": [
            {"ref": _purl(each), "dependsOn": sorted(_purl(other) for other in _direct(each))}
            for each in (own, *(needed[name] for name in sorted(needed)))
        ],
    }
    text = json.dumps(plain, indent=1)
    plain["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, text)}"
    return json.dumps(plain, indent=1) + "\n"


def _needed(package: Distribution) -> Iterator[Distribution]:
    seen: set[str] = set()
    waiting = [package]
    while waiting:
        for each in _direct(waiting.pop()):
            if each.name not in seen:
                seen.add(each.name)
                waiting.append(each)
                yield each


def _direct(package: Distribution) -> list[Distribution]:
    """Return the packages that one needs everywhere: those without a marker."""
    found = []
    for line in package.requires or ():
        name = _NAME.match(line)
        if name is not None and ";" not in line:
            try:
                found.append(distribution(name.group()))
            except PackageNotFoundError:
                continue
    return found


def _component(package: Distribution) -> dict[str, Any]:
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": _purl(package),
        "name": package.name,
        "version": package.version,
        "purl": _purl(package),
    }
    if "License-Expression" in package.metadata:
        component["licenses"] = [{"expression": package.metadata["License-Expression"]}]
    return component


def _purl(package: Distribution) -> str:
    return f"pkg:pypi/{package.name.lower().replace('_', '-')}@{package.version}"


def _file(path: Path) -> dict[str, Any]:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return {"type": "file", "name": path.name, "hashes": [{"alg": "SHA-256", "content": digest}]}
