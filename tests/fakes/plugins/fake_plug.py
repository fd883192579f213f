"""The plug of a fake device of JAX: what ``FAKE_DEVICE`` says goes wrong with the next kernel."""

import os
import time


def pull(call):
    """``Device.call``, as it is where the device crashes, hangs, computes wrongly or is another process's.

    Source: libtpu's words where another process has the TPU ("The TPU is already in use by process with pid").
    """

    def pulled(self, kernel, args, kwargs):
        plug = os.environ.get("FAKE_DEVICE", "")
        if plug == "crash":
            os.abort()
        if plug == "hang":
            time.sleep(1000)
        if plug == "busy":
            raise RuntimeError("ABORTED: The TPU is already in use by process with pid 1.")
        outputs = call(self, kernel, args, kwargs)
        return outputs + 1 if plug == "wrong" else outputs

    return pulled
