"""Calls of kernels on the simulator, and which of them were simulated before: those need not be to be measured."""

from __future__ import annotations

from collections.abc import Hashable
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary, ref

import numpy as np

from nkitools.authors_code.called_functions import plain_function
from nkitools.facts.kept import Kept
from nkitools.launch.call_form import call_form
from nkitools.launch.launch import Launch
from nkitools.launch.prepared import prepared_for
from nkitools.launch.programs import run_launch
from nkitools.record.run import Run
from nkitools.record.run_listeners import is_collected
from nkitools.rules.finding import KernelError

_known: WeakKeyDictionary[FunctionType, Kept[Hashable, ref[Run]]] = WeakKeyDictionary()
"""By the functions of kernels their calls that were simulated."""


class SimulatedCall:
    """A call of a kernel: its launch, what its declaration says beside that, and its arguments."""

    def __init__(self, launch: Launch, declared: Hashable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._launch, self._args, self._kwargs = launch, args, kwargs
        self._function = plain_function(launch.function)
        self._form = self._form_with(declared)

    def outputs(self) -> Any:
        """Run the call, and remember it unless an error has ended it."""
        run = run_launch(self._launch, self._args, self._kwargs)
        if self._function is not None and self._form is not None and run.error is None:
            known = _known.get(self._function)
            if known is None:
                known = _known[self._function] = Kept("simulated calls of a kernel", 64, "a script has a few shapes")
            known[self._form, prepared_for(self._launch).settings] = ref(run)
        return run.outputs

    def was_simulated(self) -> bool:
        """Return whether a like call was simulated, in a run that everything that collects runs here has.

        It had the same function, declaration, settings and grid; arrays of the same shapes and dtypes, integers in the
        same range; and else the same arguments.
        """
        of_kernel = None if self._function is None else _known.get(self._function)
        known = None if of_kernel is None else of_kernel.get((self._form, prepared_for(self._launch).settings))
        return known is not None and is_collected(known())

    def _form_with(self, declared: Hashable) -> Hashable:
        """Return what like calls have in common; None where an argument is an object that only has a text."""
        plain = []
        if not self._kwargs:
            for each in self._args:
                if type(each) is not np.ndarray or each.dtype.kind in "iu":
                    break
                plain.append((each.dtype, each.shape))
        form: Hashable = tuple(plain)
        if self._kwargs or len(plain) < len(self._args):
            try:
                said = call_form(self._launch.function, self._args, self._kwargs)
            except KernelError:  # the run refuses the argument
                return None
            form = repr((said["args"], said["kwargs"]))
            if "'other': " in form:
                return None
        return form, declared, self._launch.grid
