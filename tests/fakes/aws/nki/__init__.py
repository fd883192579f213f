"""A fake of AWS's nki 0.6 (0.7 beside the metadata of that version) on an instance, or where only a compiler is.

Source: the docstring of ``nki.jit``: it detects the framework by its arguments; with NumPy arrays it "compiles and
executes standalone kernel, without a framework"; ``kernel[lnc](args)`` sets the LNC degree. That of ``nki.simulate``:
"a callable that, when invoked with NumPy arrays or torch Tensors, executes the kernel on CPU". The degree: nki.jit 0.7
(NEURON_LOGICAL_NC_CONFIG, 1 if unset), 0.6 (the bracket, which must be the runtime's). NKI_ARTIFACTS_DIR, read at
import: a call with NumPy arrays leaves ``kernel.neff``, also where the run fails. ``lnc``: public reports of 0.6.
"""

import functools
import inspect
import os
import pickle
import sys
from importlib import metadata

import numpy as np

# What compiler and runtime say (Neuron Runtime troubleshooting: statuses), where FAKE_NEURON is "strict".
_WORDS = {
    "NK101": "[INTERNAL_ERROR] [NCC_INLA001] BIR verification failed: 256 partitions",
    "NK402": "nrt_execute status=1006 NRT_EXEC_OOB: out-of-bounds access",
}


_ARTIFACTS = os.environ.get("NKI_ARTIFACTS_DIR")
try:
    _VERSION = ".".join(metadata.version("nki").split(".")[:2])
except metadata.PackageNotFoundError:
    _VERSION = "0.6"


class Kernel:
    """What ``jit`` returns."""

    def __init__(self, function, lnc=None):
        self._function, self._lnc = function, lnc
        self.lnc = lnc or 1
        functools.update_wrapper(self, function)

    def __getitem__(self, lnc):
        return Kernel(self._function, lnc)

    def __call__(self, *args, **kwargs):
        pulled = os.environ.get("FAKE_NEURON", "")
        if pulled == "busy":  # Neuron Runtime troubleshooting: another process holds the cores
            raise RuntimeError("nrt_init failed: NRT_RESOURCE: logical NeuronCore 0 is in use by another process")
        if pulled == "fatal":  # nrt_status: every later launch of the process gives it
            raise RuntimeError("nrt_execute status=101 NRT_EXEC_UNIT_UNRECOVERABLE")
        if pulled == "crash":
            os.abort()
        if pulled == "hang":
            import time

            time.sleep(1000)
        native = sys.modules.get("torch_neuronx")
        if hasattr(native, "launch") and _has_tensors(args, kwargs):
            return native.launch(functools.partial(_host_call, self), args, kwargs)
        return _host_call(self, *args, **kwargs)


def _host_call(kernel, *args, **kwargs):
    """Compile, then run."""
    lnc = _checked_degree(kernel)
    outputs = compiled_by(kernel, args, kwargs)
    if not _has_tensors(args, kwargs) and _ARTIFACTS:
        leave_neff(_ARTIFACTS, kernel, lnc, args, kwargs, outputs)
    if not os.path.exists(os.environ.get("NKITOOLS_SYSROOT", "") + "/dev/neuron0"):
        raise RuntimeError("nrt_init failed: NRT_FAILURE: no neuron device found")
    return outputs + 1 if os.environ.get("FAKE_NEURON") == "wrong" else outputs


def compiled_by(kernel, args, kwargs):
    """What the kernel will compute; the compiler's errors."""
    if os.environ.get("FAKE_NEURON") == "hang":
        import time

        time.sleep(1000)
    if os.environ.get("FAKE_NEURON") == "greedy":
        np.ones(1 << 40, np.int8)
    return _computed(kernel._function, kernel._lnc, args, kwargs)


def _checked_degree(kernel):
    """The kernel's degree, which must be the runtime's."""
    said = int(os.environ.get("NEURON_LOGICAL_NC_CONFIG") or 1)
    asked = kernel._lnc or (1 if _VERSION == "0.6" else said)
    if asked != said:
        raise RuntimeError(f"[NCC_EVRF066] NKI kernel was configured with LNC {asked}, compiler with {said}")
    return asked


def leave_neff(folder, kernel, lnc, args, kwargs, outputs):
    """What the compiler leaves; this one has the outputs in it."""
    bound = inspect.signature(kernel._function).bind(*args, **kwargs).arguments
    inputs = {name: (each.shape, each.itemsize) for name, each in bound.items() if isinstance(each, np.ndarray)}
    plain = [np.asarray(each) for each in (outputs if isinstance(outputs, tuple) else (outputs,))]
    with open(os.path.join(folder, "kernel.neff"), "wb") as file:
        pickle.dump({"inputs": inputs, "outputs": plain, "lnc": lnc}, file)


def _has_tensors(args, kwargs):
    torch = sys.modules.get("torch")
    return torch is not None and any(isinstance(each, torch.Tensor) for each in (*args, *kwargs.values()))


def jit(fn=None, **kwargs):
    """As a decorator with and without arguments."""
    return Kernel if fn is None else Kernel(fn)


def simulate(kernel):
    """The function that runs on the CPU."""
    if os.environ.get("FAKE_NEURON") == "lame":
        raise RuntimeError("the simulator gives up")
    return lambda *args, **kwargs: _computed(kernel.__wrapped__, kernel._lnc, args, kwargs)


def _computed(function, lnc, args, kwargs):
    import nkitools
    from nkitools.facts import options

    # NKI_PRECISE_FP=0 (nki_simulator guide): narrow dtypes are computed with in float32.
    precision = "full" if os.environ.get("FAKE_NEURON") == "wide" else "precise"
    strict = os.environ.get("FAKE_NEURON") == "strict"
    with options.override(precision=precision):
        try:
            rules = "error" if strict else "off"
            return nkitools.simulate(function, *args, grid=lnc, rules=rules, **kwargs).outputs
        except nkitools.KernelError as error:
            if not strict:
                raise
            # Some errors of the back end end with the author's line (public reports).
            line = f'Source Kernel "{function.__module__}.{function.__name__}", line {error.finding.line}'
            raise RuntimeError(f"{_WORDS.get(error.finding.rule, str(error))} {line}") from None
