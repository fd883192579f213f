"""Runs that earlier versions have saved, as JSON alone, are read."""

from __future__ import annotations

import zlib
from base64 import b64decode
from pathlib import Path

import ml_dtypes
import numpy as np

import nkitools

# What nkitools 0.2.0 wrote of `scaled`, before saved runs were zips: two turns of a loop, each with a print, a doubling
# and a transfer, on a float32 [8, 4] of 0 to 31.
SAVED_BY_0_2_0 = """
eNrtWetv20YS/1cIfqnTMopoq7YsQB9ImXHk3CUmgtwhJwnEilxRW1O7xC5pWjX0v3dm+ZLl2FbjxhegFWCL3Mc8fvPYmdWtuRByRTJzYPIrlgmRqNcy
56ZlXlOpmODmwLbMFYloMF/Dom7nsNOF2SsqOU1gQIUkoRGMZETGFOnMc5ZkDEmES5bCQCb5IbylkoasJFk9UxhVNIPFsTIHt6bMEwoPpqSpkBlMxpJF
5mAyg2XhkkYwHSgK3AY8TxILJQ4aMUG0E3MDbCi5AlkzpGSfHoIUJEmQ+iLnYVYubYResIQ27510DUMJ4zD0q2WCPkBicmtG2TrFVYtEkOwIVVFLgiOT
vtWbbUC6q6JcfLsBAaiUQtYiijxL80xrl+UpMgOCREqyxqGa8lyTto93SFtmRDIC8w58/LHrFB58f3Jd33sb+19c98o7j/256xbeO9+nrtv3PMePlyPP
G3/xmTt6740L/7flyPcuxn7ijv7rXcT+ajkKvYueHw+HJsgLUrAQ7DaZmFIUyrT6M9AJgZSMZyUCYK4Fu0FTIl7gGyTJKSpwT5P7GPW0IikJr8DMsOL3
hM3NRjPqvP3tizNyXa7inu96/ofCuXFy5xdQ9LJwmXsVnruxF/8ndpmzdg+dj2Nn7PWcXnzxznEvP45ADdRih919cVIpYklWpTclQqSVTST4Q3fziCec
gvvTlZDo/Z/cz29hQhJ+1RhYRhSs3bVMplSOvqnjRTULcl5IlmWU1wMSHDlsnRhmFPqLaaItvjPS58vif+dnAlC88M+KM+aGTt8X8VF85n3snfUcd7SA
uX/573CuD3MqfgNzlzeFuz7pX3b94fPRtp+Ptt2i3ftmtGcoBo/K5DMpsw9MfHh/bPcR1SRHECOKuYpkNHpNUqYTFqQclqGASwgQEwVWisS4lycdsgCi
NAChY2owZbT7DcV4SI0P78cGpqpHQDhBsVc0Qh6fFTUu19lS8J+Uoal2MLOKJF8hlicPYI0YfyXfpRDquaQNOA20iAbkSVHQKuHSm5SGWf2GC4HsgiSK
onAhGKJCbcs6jKtM5popTB7XYmrbpwnh2+4L0PW3fPd4O9l5I/zDZK5YRvfcVXw+xz/chSDsywszq+dqXpmQ2owPbrQPt3bGzsiJQdLCOYO8fKb5kjXk
+30JOJDMnbFTfyMBPLYCsVgouj+V6oNEADYdnU3ApURS/hipLUpv3vSHe0B+B4Kx3tHkqD22OF6ZQLQnowdN4ITejhlzhjkMnKV0L8pjHRJmtCLo9+tQ
lwjdDiRcTrhQ4IocXdE+6nY79snRKTz0jnon/SPLLAgcYMFCUrVsfJdEkQpIUpB1688CIhrTBm2HMpFDxdG+h0sBvFRTeRAI+kDwZN2sSInSCyA3Ye6O
mgkK/4slxajDUMKtpT5BKHTQQ+2Qr2h51pqRwpSiZKizKBM61YCIYh6sRIRHQhTT+rFCpyIKxJvkN4FApJaWAIZFSgHcaIcBxjWNmcqghKqCPqEoSLAi
WLdNJlNcPTUtfIId8KTV1/9g6BNwhbHbzQw/+vxq7HUN2QMSbWuy4949m2kr/nhGmuh8SUB4lHnW2qw8PIJ69muG036OgHfNBnZ8lHhqKFqO2u2c3c7Z
zzKoZvznLIpbHjEpvtYa7C5zpSBRSDSpnbX2U2vvuco/of3jh/asPt3KtHy3/oNTn0U6m9vHDxSETVGn5vkChYR2MQvgfMpYWaOA0cGa7enXRdir2QD0
SDX8cDBAMRdkIliwbKsegROHSii0stqs6GDfLiRY5xpKtmA5X/2fZe1bh1uibvWJLaBLOOSjlxJ11tRJpSNULn+zLdE799+m9UTXXNcZr4H7kkDYRhHE
chuUX1OkHMMaqdQDhS4ptCpVjb9ux4KYXWPA6HjRkRvUIrQBocMDLVBpch9a464+D/bqpULd769Pncf+vEJVR/VUC1lqcvRdNIHg+/uqUglUhs6D7d/x
Vn9nf72Pm4ucwzGE10u6gMDO+s65pJlWrZ11+2irud1LPsbrL2P06+N89C3Bs3j1t5Q6foJZec3yDGanLbPT7wmg3X0pRvZfyGjW3E/oZq9rTWZYUK8o
rW59MUaaS9LJxN46C/s/+Flo6d6gvkMKErrIAt3/A2GJCCEqeBMzpwpUwA65raFmJfPqsaxJI92zC1XJ+2BD3W0bauy/qxJw/w3IeN/Vm6Ybf/IO54XF
QtxDqr4Ns6cve3Y2PHm3s7N+v6ucXZ0yQEwtmqIdXLwo3SbDa899eVMiE7b/hk0dgS/CCho39gKMNs3Vb1D3f92yiaIVuIynTShCWZAn7SEtKdiA8rC5
KIX8QstYViKXlde1qRNkWeFPVgbPV+naIMrg6ZTXY1eswxTRo/B9ZxwCKs7BD/VkMuVTSBoLoyR8cPNqMOUGfMA6xhDmOzzSPwMc3HS00pahoRjCTJ0N
LQP6KxAex9ps+KqksxDSwGxtMG7sXFUfHNbM8IOnYskRqIIgE73rZ6NnDIzm8RejZxmD2at2G6yP6DUEZaB/OzqY6uMV2khNcHsh4NC5c5tyAN3oEFeB
TmDD6lGkXVRkBbZhabLGgfI+YnjY6e7Sq9tuTQoge0xoy4Ced7glVXmMIdKWcTvVv4RNzYHR30w5ONMfXNCKoA==
"""


def test_a_run_that_an_earlier_version_saved_is_read(tmp_path: Path) -> None:
    """With its outputs, prints, findings, instructions, source and estimate; and it can be saved again."""
    (tmp_path / "old.json").write_bytes(zlib.decompress(b64decode(SAVED_BY_0_2_0)))
    old = nkitools.load_run(tmp_path / "old.json")
    old.save(tmp_path / "new.npz")
    for run in (old, nkitools.load_run(tmp_path / "new.npz"), nkitools.Run.from_json(old.to_json())):
        result, rest = run.outputs
        assert (run.kernel, run.chip, rest, result.dtype) == ("scaled", "trn2", {"rows": 8}, ml_dtypes.bfloat16)
        np.testing.assert_array_equal(result.astype(np.float32), 2.0 * np.arange(32).reshape(8, 4))
        assert [(one.prefix, one.loops, one.line) for one in run.prints] == [
            ("tile", {"turn": 0}, 9),
            ("tile", {"turn": 1}, 9),
        ]
        np.testing.assert_array_equal(run.prints[1].value, np.arange(16, 32).reshape(4, 4))
        assert [(one.rule, one.line) for one in run.findings] == [("NK618", 7)]
        assert [one.name for one in run.instructions] == ["dma_copy", "tensor_scalar", "dma_copy"] * 2
        assert [one.line for one in run.instructions] == [8, 10, 11] * 2
        flow = run.dependences.flow
        assert flow.sources[flow.starts[2] : flow.starts[3]].tolist() == [1]
        assert list(run.sources) == ["scaled.py"]
        assert run.sources["scaled.py"].startswith("import numpy as np\n")
        assert round(run.estimate().busiest_us, 6) == round(old.estimate().busiest_us, 6) > 0
