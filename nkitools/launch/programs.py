"""Run the programs of a launch: one core a program, in turns."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from nkitools.chip.core import CORE, Core, SharedHbm, World
from nkitools.chip.host_memory import HostMemory
from nkitools.chip.numeric_flags import noticing
from nkitools.chip.numerics import Array
from nkitools.chip.tensor import NkiTensor
from nkitools.facts.versions import LanguageVersion
from nkitools.history.after_run_rules import judge
from nkitools.history.clean_forms import Form, form_of, keep_clean, written_if_clean
from nkitools.history.unread import report_unread
from nkitools.history.unread_arguments import report_unread_arguments
from nkitools.launch.arguments import Arguments
from nkitools.launch.blas import one_thread
from nkitools.launch.breakpoints import authors_breakpoints
from nkitools.launch.changed_source import warn_of_changed_source
from nkitools.launch.configuration import check_configuration, report_configuration
from nkitools.launch.launch import Launch
from nkitools.launch.plain_ranges import counted_ranges
from nkitools.launch.prepared import Prepared, prepared_for
from nkitools.launch.program_scheduler import Baton
from nkitools.launch.results import check_completed, check_effect, check_results, tensors_of
from nkitools.launch.second_run import Again
from nkitools.launch.shared_tensors import check_shared
from nkitools.launch.signatures import bind, names_by_position, signature_of
from nkitools.launch.tracebacks import hands_over
from nkitools.record.columns import Columns
from nkitools.record.record import Record
from nkitools.record.reporter import Reporter
from nkitools.record.run import Run
from nkitools.record.run_session import session
from nkitools.record.source_sites import KernelLines, Site, give_back
from nkitools.record.watch.watched_record import watched_record
from nkitools.rules.catalogue import RULES
from nkitools.rules.finding import REPORTER, KernelError, refuse, report
from nkitools.rules.finding import Reporter as Report

_NOWHERE = Site("", 0, None, "")


def run_launch(launch: Launch, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Run:
    """Run all programs of a launch; the run it returns was announced when it began.

    Exceptions of the kernel pass through. A run that collects its findings and cannot go on ends with outputs None.
    """
    __tracebackhide__ = True
    if CORE.get() is not None:
        refuse("NK610", f"kernel {launch.name} is launched inside a running kernel")
    return prepared_for(launch).watched(_run, args, kwargs)


def _run(prepared: Prepared, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Run:
    launch, settings = prepared.launch, prepared.settings
    run = Run(launch.name, "builtin", settings.chip, settings.precision)
    run.settings = settings.described(launch.grid)
    run.again = Again(run_launch, launch, args, kwargs, settings.asked)
    with session(run, settings.level) as findings:
        lines = prepared.lines.pop(prepared.of_lines, None) or KernelLines()  # new ones while another run has them
        run.record = record = watched_record(lines)
        record.prints, record.echo = run.prints, launch.echo
        reporter = Reporter(findings, record)
        programs = Programs(prepared, record, reporter)
        reported = reporter if launch.reported is None else launch.reported(reporter)
        token = REPORTER.set(reported)
        try:
            report_source(prepared, reporter)
            with one_thread(), authors_breakpoints(prepared.sets_breakpoints), counted_ranges(prepared.kernel):
                run.outputs = programs.run(args, kwargs)
        finally:
            run.peak_bytes = programs.host.peak
            REPORTER.reset(token)
        if not reporter.reports:
            give_back(lines, prepared.lines, prepared.of_lines)
    return run


@contextmanager
def reporting(reporter: Report) -> Iterator[None]:
    """Give the broken rules of the block to ``reporter``."""
    token = REPORTER.set(reporter)
    try:
        yield
    finally:
        REPORTER.reset(token)


def report_source(prepared: Prepared, reporter: Reporter) -> None:
    """Report the findings of the source of a launch, unless an earlier one with the same functions has had none."""
    functions = prepared.functions()
    if functions and functions is prepared.silent:
        return
    launch, language = prepared.launch, prepared.settings.language
    warn_of_changed_source(launch.function)
    if reporter.level == "off":
        return
    before = reporter.reports
    _report_launch(launch, reporter, language)
    from nkitools.lint.functions import source_findings  # the parser and the checks, which no import needs

    for found in source_findings(launch.function, language):
        with reporter.placed(Site(found.file, found.line, found.column, found.function)):
            reporter(RULES[found.rule], found.message, False, (), found.remedy, None, found.facts)
    prepared.silent = functions if reporter.reports == before else None


def _report_launch(launch: Launch, reporter: Reporter, language: LanguageVersion) -> None:
    """Report, at the kernel's first line, findings about how it is specialized, compiled and launched.

    NK618: the former front end specializes it. NK621: its grid has a size of 0. NK609, NK613 and others: its
    configuration (`report_configuration`).
    """
    notice = language.front_end_notice
    configured = launch.compile_config or launch.specialization_config or launch.environment_lnc
    if notice is None and not configured and 0 not in launch.grid_asked:
        return
    code = getattr(inspect.unwrap(launch.function), "__code__", None)
    file, line = (code.co_filename, code.co_firstlineno) if code is not None else ("", 0)
    with reporter.placed(Site(file, line, None, launch.name)):
        if notice is not None:
            report("NK618", notice.message, remedy=notice.remedy, severity=notice.severity)
        if 0 in launch.grid_asked:
            shown = ", ".join(map(str, launch.grid_asked))
            message = f"kernel {launch.name} is launched with [{shown}]: the chip runs one program where a size is 0"
            report("NK621", message, remedy=f"Write [{', '.join(map(str, launch.grid))}].")
        check_configuration(launch, language)
        report_configuration(launch)


class Programs:
    """The programs of one launch, or of one rank of a launch, ``rank`` of ``world``.

    To run them: `enter` the arguments, `join` a baton, `play` each program in its turns, `finish` with their results.
    """

    def __init__(
        self,
        prepared: Prepared,
        record: Record,
        reporter: Reporter,
        *,
        world: World | None = None,
        is_shared: Callable[[Array], bool] | None = None,
        host: HostMemory | None = None,
    ) -> None:
        self.prepared, self.launch, self.programs = prepared, prepared.launch, prepared.programs
        self.record = record
        self.reporter = reporter
        self.arguments = Arguments(prepared, is_shared)
        self.shared = SharedHbm()
        self.host = prepared.host_memory() if host is None else host
        self.baton: Baton | None = None  # of programs that take turns
        self.world = world
        self.first = len(self.programs) * (record.rank or 0)  # the number of the first program among all ranks'

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run all programs and return program 0's result, converted to the arguments' framework."""
        try:
            self.enter(args, kwargs)
            if len(self.programs) == 1:
                self.turn_of(0)
                return self.finish([self.play(0)])
            baton = Baton(self.prepared.names, self.turn_of, self.prepared.settings.seed)
            self.join(baton)
            return self.finish(baton.run(self.play))
        finally:
            self.arguments.restore()

    def enter(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Take the arguments of the kernel."""
        self.record.keeps_parts = len(self.programs) > 1 and self.reporter.level != "off"
        self.record.compares_bodies = self.prepared.settings.language.traced and self.reporter.level != "off"
        if self.record.keeps_parts:
            from nkitools.record.shared_values import SharedValues

            self.record.observe(SharedValues())
        self.entered, self.named = _enter(self.launch, self.arguments, args, kwargs)
        self.inputs: list[int] = []
        for storage in self.arguments.storages:
            self.inputs.append(storage.id)
            self.record.given(storage)
            self.host.give(storage.nbytes)

    def join(self, baton: Baton) -> None:
        """Take turns by this baton."""
        self.baton = baton
        if baton.interrupts:
            from nkitools.record.pauses import Pauses

            self.record.observe(Pauses(baton.pause))

    def baton_of_all(self) -> Baton:
        """Return the baton by which the programs take turns; of one that is alone it is made when it has to wait."""
        return self.baton or Baton(self.prepared.names)

    def turn_of(self, number: int) -> None:
        """Give the turn to program ``number`` (of this launch or rank)."""
        self.record.turn_of(self.programs[number])

    def play(self, number: int) -> Any:
        """Run program ``number`` in its turns."""
        return self._run_one(self._core(self.programs[number]), self.entered, self.named)

    def finish(self, results: list[Any]) -> Any:
        """Report the findings of the whole record, and return program 0's result, converted to the arguments'
        framework.
        """
        if self.record.changed_bodies:
            self._report_changed_bodies()
        if len(self.programs) > 1:
            check_shared(self.shared, self.programs, self.record, self.reporter)
        self.record.close()
        self.record.has_ended = True
        is_modern = self.launch.dialect.has_known_issues
        returned = tensors_of(results[0])
        form = self._form(returned)
        clean, reports = written_if_clean(form), self.reporter.reports
        columns = None if clean is not None else Columns(self.record)
        if columns is not None:
            judge(columns, self.reporter, self.prepared.generation, self.launch.dialect, spills=self.prepared.spills)
        found = self.reporter.reports - reports
        if self.launch.schedule is not None:
            from nkitools.launch.schedule import check_schedule

            check_schedule(self.launch.schedule, self.record, self.reporter)
        try:
            if not returned:
                check_completed(results[0])
            on_chip = self.launch.returns_on_chip
            check_results(returned, self.record, self.reporter, on_chip=on_chip, is_modern=is_modern)
        except KernelError as error:
            if error.finding.rule == "NK403":  # a page shows what there is of them
                self.record.returned(returned)
            raise
        if not returned and self.world is None:  # a rank may work for others
            check_effect(results[1:], self.inputs, self.record, self.reporter)
        self._report_changed_arguments(results, clean)
        self.record.returned(returned)
        if columns is not None and self.reporter.level != "off":
            self._report_unread(columns, form if not found else None, is_modern=is_modern)
        self.arguments.finish()
        return self.arguments.leave(results[0])

    def _report_changed_arguments(self, results: list[Any], written: tuple[int, ...] | None) -> None:
        """NK409: the kernel changed an argument that it may not change, beyond the part that it returns.

        ``written``: the storages that it writes, numbered from the oldest of the run on, None if unknown yet.
        """
        keeping = self.launch.keeping
        if keeping is None or self.reporter.level == "off" or not self.launch.dialect.writes_arguments:
            return
        kept = self.arguments.kept
        if not kept:
            return
        returned = [tensor for result in results for tensor in tensors_of(result)]
        whole = {tensor.storage.id for tensor in returned if tensor.array is tensor.storage.array}
        asked = [storage for storage in kept if storage not in whole]
        columns, oldest = Columns(self.record), self.record.oldest
        touched = columns.written_storages if written is None else {oldest + number for number in written}
        if not touched.isdisjoint(asked):
            from nkitools.history.changed_arguments import report_changed_arguments

            changed = self.arguments.changed_elements
            report_changed_arguments(columns, self.reporter, asked, returned, changed, keeping.severity)

    def _report_unread(self, columns: Columns, form: Form | None, *, is_modern: bool) -> None:
        """NK513: nothing reads an argument or a result. Keep the run's ``form`` if there is nothing to report."""
        before = self.reporter.reports
        report_unread(columns, self.reporter, named=not is_modern)
        if self.world is None:
            report_unread_arguments(columns, self.reporter, self._site, self.inputs)
        if self.reporter.reports == before:
            keep_clean(form, self.record, columns.written_storages)

    def _form(self, returned: list[NkiTensor]) -> Form | None:
        """Return the form of the run if runs of this form need no rules over their records; else None."""
        level, launch = self.reporter.level, self.launch
        if level == "off":
            return None
        before: tuple[Any, ...] = ()
        if self.reporter.reports:
            before = tuple([(each.rule, each.severity) for each in self.reporter.findings.all])
        code = getattr(launch.function, "__code__", None)
        place = None if code is None else (code.co_filename, code.co_firstlineno, code.co_name)
        around = (
            level, self.prepared.generation.name, launch.dialect.name, launch.name, self.world is None,
            self.prepared.spills, before,
        )  # fmt: skip
        return form_of(self.record, returned, self.inputs, *around, place)

    @property
    def _site(self) -> Site:
        """Return the first line of the kernel."""
        code = getattr(self.launch.function, "__code__", None)
        return _NOWHERE if code is None else Site(code.co_filename, code.co_firstlineno, None, code.co_name)

    def _report_changed_bodies(self) -> None:
        """NK622: bodies of loops on the device that have changed outer objects, though their source shows no change."""
        from nkitools.lint.functions import shows_changes
        from nkitools.lint.outer_changes import KEEP, traced_once_message

        for each in self.record.changed_bodies:
            site = Site(each.code.co_filename, each.code.co_firstlineno, None, each.code.co_name)
            if not shows_changes(each.body):
                with self.reporter.placed(site):
                    report("NK622", traced_once_message(f"has changed `{each.name}`", each.loop), remedy=KEEP)
        self.record.changed_bodies.clear()  # they keep the tensors alive that they name

    def _core(self, program: tuple[int, ...]) -> Core:
        prepared, config = self.prepared, self.launch.specialization_config
        return Core(
            prepared.generation,
            self.record,
            prepared.plans,
            self.launch.grid,
            program,
            self.shared,
            dialect=self.launch.dialect,
            full_plans=prepared.full_plans,
            input_ids=frozenset(self.inputs),
            make_baton=self.baton_of_all,
            team=tuple(range(self.first, self.first + len(self.programs))),
            language=prepared.settings.language,
            sums_in_order=prepared.settings.sum_order == "chip",
            compile_config=self.launch.compile_config,
            allows_nested_configs=config is not None and config.allow_nested_config_override,
            world=self.world,
            rank=self.record.rank,
            host=self.host,
        )

    @hands_over
    def _run_one(self, core: Core, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        token = CORE.set(core)
        ended = False
        try:
            with noticing(None if self.reporter.level == "off" else core.evidence):
                result = self.launch.function(*args, **kwargs)
            if core.prepared is not None:
                self._report_untriggered(core)
            ended = True
            return result
        except ValueError as error:
            from nkitools.launch.read_only import check_write

            check_write(error, self.arguments, self.reporter)
            raise
        except AttributeError as error:
            from nkitools.launch.argument_misuse import check_use

            check_use(error, self.launch.function, args, kwargs, self.reporter)
            raise
        except TypeError as error:
            from nkitools.launch.argument_misuse import check_call

            check_call(error, self.reporter)
            raise
        finally:
            CORE.reset(token)
            if not ended:
                self.record.changed_bodies.clear()
                self.arguments.finish_objects()

    def _report_untriggered(self, core: Core) -> None:
        """NK504: a prepare of a collective that no trigger has followed."""
        with self.reporter.placed(self.record.sites[core.prepared.site]):
            report(
                "NK504",
                f"{core.prepared.name}: no trigger has followed, so that nothing was moved",
                remedy=f"Call {core.prepared.trigger_name} with the handle that this line returns.",
            )


def _enter(
    launch: Launch, arguments: Arguments, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments as tensors, each named by its parameter."""
    names = None if kwargs else names_by_position(launch.function, len(args))
    if names is not None:
        return tuple(map(arguments.enter, names, args)), {}
    signature = signature_of(launch.function)
    bound = bind(launch.name, signature, args, kwargs)
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        if kind is kind.VAR_KEYWORD:
            bound.arguments[name] = {key: arguments.enter(key, item) for key, item in value.items()}
        else:
            bound.arguments[name] = arguments.enter(name, value)
    return bound.args, bound.kwargs
