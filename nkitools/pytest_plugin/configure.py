"""The session's state: options, stand-in imports, marks and the recorder; all undone when the session ends."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from nkitools.facts import options
from nkitools.facts.options import OPTIONS
from nkitools.pytest_plugin.adoption import Adoption, FirstImport, adoption_of, initial_conftests, is_said
from nkitools.pytest_plugin.command_line import all_decided, decided
from nkitools.pytest_plugin.marks import IN_WORKER, MARKS, needs_hardware
from nkitools.pytest_plugin.recording import RECORDER, Recorder
from nkitools.pytest_plugin.summary import Summary

_SESSION = pytest.StashKey[ExitStack]()


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Look for use of nkitools before the first conftest.py is imported: it may import a kernel."""
    _session(early_config)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Apply the options, and start to record runs.

    Raises UsageError for an option that is impossible here: AWS's simulator without its package, a directory that
    cannot be written.
    """
    session = _session(config)
    if config.getoption("markers", False):  # --markers lists them without collecting
        adoption_of(config).search()
    # The report directory is shared with xdist's workers, who may stand elsewhere: hand them the absolute path.
    values = all_decided(config)
    config.option.nki_report = decided(config, OPTIONS["report"])
    session.enter_context(options.override(**{**values, "report": config.option.nki_report}))
    _say_of_replay(config, session)
    _check_simulator()
    _check_directory(options.value("report"))
    # What few sessions ask for is imported where it is asked for: loading the plugin is light.
    live = None
    if options.value("prints"):
        from nkitools.pytest_plugin.live_prints import LiveTerminal

        live = LiveTerminal(config, session)
    config.stash[RECORDER] = recorder = Recorder(config, live)
    config.pluginmanager.register(recorder, "nkitools-recorder")
    config.pluginmanager.register(Summary(), "nkitools-summary")
    if options.value("report"):
        from nkitools.pytest_plugin.report_pages import Pages

        config.pluginmanager.register(Pages(recorder), "nkitools-pages")
    if options.value("compare"):
        from nkitools.pytest_plugin.compare_targets import Agreeing

        config.pluginmanager.register(Agreeing(config), "nkitools-agreeing")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Start the process for hardware tests if there are any, and check their measurements."""
    if not any(needs_hardware(item) for item in session.items):
        return
    from nkitools.pytest_plugin.benchmarks import Suspects
    from nkitools.pytest_plugin.isolation import Isolation, isolates

    session.config.pluginmanager.register(Suspects(), "nkitools-suspects")
    if isolates(session.config):
        session.config.pluginmanager.register(Isolation(session.config), "nkitools-isolation")


def _session(config: pytest.Config) -> ExitStack:
    """Return the stack of this session's undo actions; the first call finds out whether the project uses nkitools."""
    if _SESSION in config.stash:
        return config.stash[_SESSION]
    config.stash[_SESSION] = session = ExitStack()
    # A cleanup, not pytest_unconfigure: it is also called when the configuration fails half-way.
    config.add_cleanup(session.close)
    adoption = Adoption(config, lambda: _adopt(config, session))
    if is_said(config):
        adoption.adopt()
    for path in initial_conftests(config):
        adoption.read(path)
    if not adoption.is_adopted:
        waiting = FirstImport(adoption)
        sys.meta_path.insert(0, waiting)
        session.callback(waiting.leave)
    return session


def _adopt(config: pytest.Config, session: ExitStack) -> None:
    """Give a project that uses nkitools the stand-in, the marks and the debugger."""
    from nkitools.targets.imports import stand_in

    session.enter_context(stand_in(_stand_in_policy(config)))
    for mark, meaning in MARKS.items():
        config.addinivalue_line("markers", f"{mark}: {meaning}")
    if getattr(config.option, "usepdb_cls", None) is None:
        config.option.usepdb_cls = ("nkitools.launch.debugger", "KernelDebugger")


def _stand_in_policy(config: pytest.Config) -> str:
    """Return the value of the option; on an instance ``auto`` is AWS's packages for hw tests and ours for the others.

    One process cannot import both, and hw tests have a process of their own.
    """
    policy = str(decided(config, OPTIONS["stand_in"]))
    if policy != "auto" or _early(config, "isolate") != "process":
        return policy
    from nkitools.targets.neuron import NeuronDevice
    from nkitools.targets.neuron_compiler import NeuronCompiler

    here = NeuronCompiler() if _early(config, "target") == NeuronCompiler.key else NeuronDevice()
    if not here.available().ok:
        return policy
    if os.environ.get(IN_WORKER):
        return "never"
    alone = config.known_args_namespace.usepdb or _early(config, "simulator") == "official"
    return "auto" if alone else "always"


def _early(config: pytest.Config, name: str) -> options.Value:
    """Return the value of an option before pytest has parsed its flags for good."""
    flag = getattr(config.known_args_namespace, OPTIONS[name].ini, None)
    return flag if flag is not None else decided(config, OPTIONS[name])


def _say_of_replay(config: pytest.Config, session: ExitStack) -> None:
    """Print that the options for replay do nothing, once for the session, outside of a test's output."""
    if not options.asks_for_replay():
        return
    if not (hasattr(config, "workerinput") or os.environ.get(IN_WORKER)):
        options.say_that_nothing_is_replayed()
    session.enter_context(options.override(**dict.fromkeys(options.REPLAY)))


def _check_simulator() -> None:
    if options.value("simulator") != "official":
        return
    from nkitools.targets.official import OfficialSimulator

    found = OfficialSimulator().available()
    if not found.ok:
        raise pytest.UsageError(f"--nki-simulator=official: {found.reason}")


def _check_directory(directory: options.Value) -> None:
    if not isinstance(directory, str):
        return
    try:
        Path(directory).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise pytest.UsageError(f"--nki-report: cannot make directory {directory}: {error.strerror}") from None
    if not os.access(directory, os.W_OK | os.X_OK):
        raise pytest.UsageError(f"--nki-report: directory {directory} is not writable")
