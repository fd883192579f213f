"""The marks, and how they decide on which targets a test runs."""

from __future__ import annotations

import os
import re
from typing import Any

import pytest

from nkitools.facts import options
from nkitools.facts.options import FIXTURES
from nkitools.pytest_plugin.adoption import imports_nki

MARKS = {
    "sim": "the test runs in simulation; a test that asks for run_kernel has a variant with this mark",
    "simulation": "another name of sim",
    "nki_allow(rule, ..., reason='')": "accept findings of these rules in the test: they are listed as allowed",
    "nki_sweep(kernel, space, *, arguments=None, reference=None, chips=None, store=None, sample=None, seed=0, "
    "rtol=None, atol=None, mutates=())": "a test with the fixture nki_case for each case of a space, which must pass",
    "hw(device, ...)": "the test runs on hardware (neuron, tpu, gpu; default: any that its kernel can run on), and is "
    "skipped where there is none; as for sim, with run_kernel it is a variant",
}

TARGET_FIXTURE = "_nki_target"
_PLUGIN = "nkitools.pytest_plugin."
# Rules are judged in simulation: a test that expects a finding runs there, unless its author says otherwise.
_FIXTURES_OF_SIM = ("expect_finding", "kernels_ran", "nki_case")

# Set in the process for hardware tests.
IN_WORKER = "NKITOOLS_HW_WORKER"
_WANTED = pytest.StashKey[bool]()

_TARGET_OF = {"sim": "sim", "simulation": "sim", "hw": "hw"}
_MARKS_OF = {"sim": ("sim", "simulation"), "hw": ("hw",)}


def target_of(item: pytest.Item) -> str | None:
    """Return the target of this variant of a test: ``sim``, ``hw``, or None for a test that is no variant."""
    callspec = getattr(item, "callspec", None)
    target = callspec.params.get(TARGET_FIXTURE) if callspec is not None else None
    return target if isinstance(target, str) else None


def asked_targets(item: pytest.Item) -> set[str]:
    """Return the targets that the marks of the test, its case, class or module name; else those of its fixtures.

    The marks of a test without a fixture of nkitools are its project's own, unless the option ``marks`` is on; without
    marks it runs in simulation if its file imports nki or neuronxcc.nki.
    """
    is_marked = any(mark.name in _TARGET_OF for mark in item.iter_markers())
    if not (uses_ours(item) or options.value("marks")):
        return {"sim"} if not is_marked and imports_nki(item) else set()
    marked = {_TARGET_OF[mark.name] for mark in item.iter_markers() if mark.name in _TARGET_OF}
    asked_for = getattr(item, "fixturenames", ())
    of_sim = _FIXTURES_OF_SIM if target_of(item) else (*_FIXTURES_OF_SIM, TARGET_FIXTURE)
    return marked or {"sim" for fixture in of_sim if fixture in asked_for}


def uses_ours(item: pytest.Item) -> bool:
    """Return whether a test asks for a fixture of nkitools, and not for another plugin's or its own of that name."""
    found = getattr(item, "_fixtureinfo", None)
    defined = {} if found is None else found.name2fixturedefs
    return any(defined[name][-1].func.__module__.startswith(_PLUGIN) for name in FIXTURES if defined.get(name))


def needs_hardware(item: pytest.Item) -> bool:
    """Return whether the test, or this variant of it, runs on hardware only."""
    target = target_of(item)
    return target == "hw" or (target is None and asked_targets(item) == {"hw"})


def asked_devices(item: pytest.Item) -> tuple[str, ...]:
    """Return the devices that ``@pytest.mark.hw("neuron", ...)`` names, from the nearest mark; () for any device.

    Raises UsageError for a name that is no device.
    """
    known = [each for each in options.OPTIONS["target"].choices if each != "compile"]
    for mark in item.iter_markers("hw"):
        for name in mark.args:
            if name not in known:
                raise pytest.UsageError(f"{item.nodeid}: mark hw names {name!r}; choose of {', '.join(known)}")
        if mark.args:
            return tuple(mark.args)
    return ()


@pytest.hookimpl(tryfirst=True)  # the target comes first in the names of tests
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make the variants of a test that asks for a target, itself or by a fixture, and the cases of a sweep."""
    if "nki_case" in metafunc.fixturenames:
        from nkitools.pytest_plugin.sweep_mark import cases_of

        cases, ids = cases_of(metafunc.definition)
        metafunc.parametrize("nki_case", cases, ids=ids, indirect=True)
    if TARGET_FIXTURE in metafunc.fixturenames:
        targets = (
            ["sim", "hw"] if _is_for_hardware(metafunc.definition) or _wants_hardware(metafunc.config) else ["sim"]
        )
        metafunc.parametrize(TARGET_FIXTURE, targets, indirect=True, scope="session")


def _is_for_hardware(test: pytest.Item) -> bool:
    """Return whether a test, or a case of its parameters, has the mark hw."""
    cases = [case for mark in test.iter_markers("parametrize") for case in _listed(mark.args[1:2])]
    marks = [mark for case in cases for mark in getattr(case, "marks", ())]
    return any(test.iter_markers("hw")) or any(mark.name == "hw" for mark in marks)


def _listed(cases: tuple[Any, ...]) -> list[Any]:
    return list(cases[0]) if cases and isinstance(cases[0], (list, tuple)) else []


def _wants_hardware(config: pytest.Config) -> bool:
    """Return whether tests get a variant on hardware: a device is there, or the session's flags ask for one."""
    if _WANTED not in config.stash:
        asked = re.search(r"\bhw\b", " ".join((config.option.markexpr, config.option.keyword, *config.args)))
        named = options.value("require_hw") or options.value("target") or options.value("compare") == "sim,hw"
        config.stash[_WANTED] = bool(asked or named or os.environ.get(IN_WORKER)) or not _missing_devices()
    return config.stash[_WANTED]


def _missing_devices() -> str:
    from nkitools.targets import missing_devices

    return missing_devices(())


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem() -> Any:
    """Leave out the variants that the author's marks exclude: they were never meant, so they are not "deselected"."""
    made = yield
    if isinstance(made, list):
        return [one for one in made if not isinstance(one, pytest.Item) or _is_wanted(one)]
    return made


def _is_wanted(item: pytest.Item) -> bool:
    target, asked = target_of(item), asked_targets(item)
    return target is None or not asked or target in asked


def pytest_itemcollected(item: pytest.Item) -> None:
    """Give each variant the mark of its target, and ``sim`` its synonym."""
    target = target_of(item)
    if target is not None:
        # A test with both marks has two variants, and each is selected by its own.
        item.own_markers = [mark for mark in item.own_markers if _TARGET_OF.get(mark.name, target) == target]
    elif TARGET_FIXTURE in getattr(item, "fixturenames", ()) and "hw" in asked_targets(item):
        raise pytest.UsageError(f"{item.nodeid}: a method of unittest.TestCase has no [hw] variant; write a function")
    for asked in asked_targets(item) if target is None else (target,):
        for mark in _MARKS_OF[asked]:
            if item.get_closest_marker(mark) is None:
                item.add_marker(mark)
    _announce_benchmark(item, target)


def _announce_benchmark(item: pytest.Item, target: str | None) -> None:
    """Mark a variant for pytest-benchmark, which finds benchmarks by their fixture (--benchmark-only)."""
    if target != "hw" or not isinstance(item, pytest.Function) or "kernel_benchmark" not in item.fixturenames:
        return
    if item.config.pluginmanager.hasplugin("benchmark") and "benchmark" not in item.fixturenames:
        # A new list: the variants of a test share the old one.
        item.fixturenames = [*item.fixturenames, "benchmark"]
