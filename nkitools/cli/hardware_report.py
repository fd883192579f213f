"""``nkitools doctor --hardware``: runs example kernels on the device in separate processes and writes one report.

The report is made to be sent in: it has no paths and no names of hosts or users.
"""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import platform
import re
import socket
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from nkitools.dialects.torch_autoload import outside_environment
from nkitools.facts.generations import generation_of
from nkitools.processes import output_of
from nkitools.record.whole_file import write_whole
from nkitools.targets.examination import as_plain, examine
from nkitools.targets.neuron import NeuronDevice
from nkitools.targets.neuron_packages import torch_backend
from nkitools.targets.packages import is_installed

FILE = "nkitools-hardware.json"
_EXAMPLES = Path(__file__).parent / "templates" / "hardware" / "test_hardware.py"
_DEGREE = "NEURON_LOGICAL_NC_CONFIG"
_MOST_LINES = 400
_PATH = re.compile(r"(?:~|(?<![\w.>])/)[\w.+@%~-]*(?:/[\w.+@%~-]+)+/?|(?<![\w.>/])/[\w.+@%~-]{2,}")
# Four numbers that begin with a lower one are a version.
_ADDRESS = re.compile(r"(?<![\d.])(?:10|[2-9]\d|[12]\d\d)(?:\.\d{1,3}){3}\b(?!\.)|\bip(?:-\d+){4}(?:\.[\w.-]+)?")
_RESULTS = ("failure", "error", "skipped")


def write_report(folder: Path, say: Callable[[str], object]) -> Path:
    """Run the examples with every installed framework and write the results into ``folder``; return the file's path.

    ``say`` is called with a line before each run, and with the reason if there is no device. OSError if the folder
    cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    device = NeuronDevice()
    if not (there := device.available()).ok:
        say(f"no kernel runs here: {there.reason}")
    runs = []
    for way, degree in _cases(device):
        say(f"{way}, {degree} physical cores a logical core")
        runs.append(_run(folder, way, degree, device.chip()))
    hidden = _private(folder)
    told = {"schema": 1, **as_plain(examine()), "chip": device.chip(), "facts": dict(device.facts()), "runs": runs}
    path = folder / FILE
    write_whole(path, json.dumps(scrubbed(told, hidden), indent=2) + "\n")
    return path


def scrubbed(told: Any, hidden: Mapping[str, str]) -> Any:
    """Return plain data without paths and addresses, and without the words of ``hidden``, which maps each to its place.

    Of a path the name of a file with a suffix stays.
    """
    if isinstance(told, str):
        for word in sorted(hidden, key=len, reverse=True):
            if "/" in word:
                told = told.replace(word, hidden[word])
        told = _ADDRESS.sub("<address>", _PATH.sub(_file_alone, told))
        for word in sorted(hidden, key=len, reverse=True):
            told = re.sub(rf"(?<![A-Za-z0-9]){re.escape(word)}(?![A-Za-z0-9])", hidden[word], told)
        return told
    if isinstance(told, dict):
        return {scrubbed(key, hidden): scrubbed(value, hidden) for key, value in told.items()}
    return [scrubbed(each, hidden) for each in told] if isinstance(told, list | tuple) else told


def _file_alone(found: re.Match[str]) -> str:
    name = found.group().rstrip("/").rpartition("/")[2]
    return f"<path>{name}" if re.fullmatch(r"[\w.-]+\.[a-z]\w*", name) else "<path>"


def _private(folder: Path) -> dict[str, str]:
    """Return the words that no reader is to see: folders of this machine, its names, and the user's."""
    host = socket.gethostname()
    names = dict.fromkeys((host, host.partition(".")[0], platform.node()), "<host>")
    with contextlib.suppress(KeyError, OSError):  # a container's user without a name
        names[getpass.getuser()] = "<user>"
    names |= {name: "<user>" for name in (os.environ.get("USER"), os.environ.get("LOGNAME"), Path.home().name) if name}
    folders = (folder.resolve(), Path.cwd(), Path.home(), Path(sys.prefix))
    return {word: place for word, place in {**names, **dict.fromkeys(map(str, folders), "<path>")}.items() if word}


def _cases(device: NeuronDevice) -> Iterator[tuple[str, int]]:
    """Yield each installed framework with each LNC degree of the chip; nothing without a device."""
    if not device.available().ok:
        return
    chip = device.chip()
    ways = ["numpy"]
    if torch_backend(chip).kind:
        ways.append("torch")
    if is_installed("jax") and is_installed("libneuronxla"):
        ways.append("jax")
    most = generation_of(chip).logical_cores if chip else 1
    for degree in range(1, most + 1):
        for way in ways:
            yield way, degree


def _run(folder: Path, way: str, degree: int, chip: str) -> dict[str, Any]:
    """Run the examples of one way with one degree under pytest, in a process that has a degree of its own."""
    place = folder / f"{way}-lnc{degree}"
    place.mkdir(exist_ok=True)
    (place / "test_hardware.py").write_text(_EXAMPLES.read_text(encoding="utf-8"), encoding="utf-8")
    (place / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    # A copy that is not installed has no entry point.
    installed = any(entry.name == "nkitools" for entry in entry_points(group="pytest11"))
    load = [] if installed else ["-p", "nkitools.pytest_plugin"]
    command = [sys.executable, "-m", "pytest", *load, "-p", "no:cacheprovider", "-rA"]
    command += [
        "-m",
        "sim or hw",
        "--nki-target=neuron",
        "-o",
        "junit_family=xunit1",
        "--junitxml=out.xml",
        "--benchmark-json=out.json",
    ]
    command += ["-k", way, "test_hardware.py"]
    said = {"NKITOOLS_CHIP": chip} if chip else {}  # for simulations and estimates, too
    environment = {**outside_environment(), **said, _DEGREE: str(degree), "PYTEST_ADDOPTS": ""}
    done = output_of(command, cwd=place, env=environment)
    return {
        "way": way,
        "degree": degree,
        "status": done.end.status,
        "tests": _tests(place / "out.xml"),
        "times": _times(place / "out.json"),
        "log": [*done.stdout.splitlines(), *done.stderr.splitlines()][-_MOST_LINES:],
    }


def _tests(path: Path) -> list[dict[str, Any]]:
    """Return name, outcome, seconds and recorded properties of each test in a report of pytest."""
    if not path.exists():
        return []
    return [
        {
            "name": case.get("name"),
            "outcome": next((result for result in _RESULTS if case.find(result) is not None), "passed"),
            "said": _said(case),
            "seconds": float(case.get("time", "0")),
            "recorded": {each.get("name"): each.get("value") for each in case.iter("property")},
        }
        for case in ET.parse(path).getroot().iter("testcase")
    ]


def _said(case: ET.Element) -> str:
    """Return the message of a test that did not pass: its error, or why the test was skipped."""
    return next((found.get("message", "") for result in _RESULTS if (found := case.find(result)) is not None), "")


def _times(path: Path) -> list[dict[str, Any]]:
    """Return the tests and rounds in a file of pytest-benchmark, without facts about the machine."""
    if not path.exists() or not path.stat().st_size:
        return []
    return [
        {
            "name": each["name"],
            "rounds": each["stats"]["rounds"],
            "round_trip_seconds": {name: each["stats"][name] for name in ("min", "median", "max")},
            **each["extra_info"],
        }
        for each in json.loads(path.read_text(encoding="utf-8"))["benchmarks"]
    ]
