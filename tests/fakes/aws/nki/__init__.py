"""A fake of AWS's nki 0.6 on an instance.

Source: the docstring of ``nki.jit``: it detects the framework by its arguments; with NumPy arrays it "compiles and
executes standalone kernel, without a framework"; ``kernel[lnc](args)`` sets the LNC degree. That of ``nki.simulate``:
"a callable that, when invoked with NumPy arrays or torch Tensors, executes the kernel on CPU".
"""

import functools
import os
import sys

# What compiler and runtime say (Neuron Runtime troubleshooting: statuses), where FAKE_NEURON is "strict".
_WORDS = {
    "NK101": "[INTERNAL_ERROR] [NCC_INLA001] BIR verification failed: 256 partitions",
    "NK402": "nrt_execute status=1006 NRT_EXEC_OOB: out-of-bounds access",
}


class Kernel:
    """What ``jit`` returns."""

    def __init__(self, function, lnc=None):
        self._function, self._lnc = function, lnc
        functools.update_wrapper(self, function)

    def __getitem__(self, lnc):
        return Kernel(self._function, lnc)

    def __call__(self, *args, **kwargs):
        pulled = os.environ.get("FAKE_NEURON", "")
        if pulled == "busy":  # Neuron Runtime troubleshooting: another process holds the cores
            raise RuntimeError("nrt_init failed: NRT_RESOURCE: logical NeuronCore 0 is in use by another process")
        if pulled == "crash":
            os.abort()
        if pulled == "hang":
            import time

            time.sleep(1000)
        native = sys.modules.get("torch_neuronx")
        if hasattr(native, "launch") and _has_tensors(args, kwargs):
            return native.launch(functools.partial(_host_call, self), args, kwargs)
        outputs = _computed(self._function, self._lnc, args, kwargs)
        return outputs + 1 if pulled == "wrong" else outputs


def _host_call(kernel, *args, **kwargs):
    return _computed(kernel._function, kernel._lnc, args, kwargs)


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
    from nkitools import options

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
            raise RuntimeError(_WORDS.get(error.finding.rule, str(error))) from None
