"""``make dist``: wheel, sdist, checksums and SBOM in dist/, built twice, which must give the same bytes.

``python -m release smoke`` installs the wheel of dist/ into an empty environment outside of the checkout and runs there
what a newcomer runs first.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from release.sbom import bill_of_materials
from release.smoke import smoke_test

REPOSITORY = Path(__file__).parents[1]
DIST = REPOSITORY / "dist"


def build(folder: Path, epoch: str) -> list[Path]:
    """Build wheel and sdist into a folder, and write the SBOM and the checksums of all beside them."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": epoch}
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder), "--target"]
    for target in ("sdist", "wheel"):
        subprocess.run([*command, target], cwd=REPOSITORY, env=environment, check=True, stdout=subprocess.DEVNULL)
    made = sorted(folder.iterdir())
    sbom = folder / f"{made[0].name.split('-')[0]}.cdx.json"
    sbom.write_text(bill_of_materials(made, int(epoch)), encoding="utf-8")
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in (*made, sbom)]
    (folder / "SHA256SUMS").write_text("".join(lines), encoding="ascii")
    return sorted(folder.iterdir())


def commit_time() -> str:
    """Return the time of the last commit in seconds; 1980 outside of a checkout, which archives of files begin with."""
    command = ["git", "log", "-1", "--format=%ct"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "315532800"


def main() -> int:
    """Build twice, compare, and keep the first."""
    if sys.argv[1:] == ["smoke"]:
        wheels = list(DIST.glob("*.whl"))
        if len(wheels) != 1:
            print(f"{len(wheels)} wheels in {DIST.name}: `make dist` builds one", file=sys.stderr)
            return 1
        return smoke_test(wheels[0])
    DIST.mkdir(exist_ok=True)
    for path in DIST.iterdir():
        path.unlink()
    first = build(DIST, commit_time())
    with tempfile.TemporaryDirectory() as again:
        second = build(Path(again), commit_time())
        differing = [
            one.name for one, other in zip(first, second, strict=True) if one.read_bytes() != other.read_bytes()
        ]
    if differing:
        print(f"two builds differ in {', '.join(differing)}", file=sys.stderr)
        return 1
    print("\n".join(f"{path.stat().st_size:>10,}  {path.relative_to(REPOSITORY)}" for path in first))
    return 0


if __name__ == "__main__":
    sys.exit(main())
