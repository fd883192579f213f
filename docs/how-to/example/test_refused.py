import numpy as np
from test_scale import scale

import nkitools


def test_a_tile_has_128_partitions_at_most(run_kernel, expect_finding):
    with expect_finding("NK101", line="nisa.dma_copy(dst=tile"):
        run_kernel(scale, np.zeros((256, 64), np.float32), 2.0)


def test_the_finding_can_be_looked_at(run_kernel, expect_finding):
    with expect_finding("partition-limit") as expected:
        run_kernel(scale, np.zeros((130, 64), np.float32), 2.0)
    assert "has 130 partitions" in expected.finding.message


def test_any_way_in(expect_finding):
    with expect_finding("NK402", match="out of bounds"):
        nkitools.simulate(lambda x: x[0:99], np.zeros((4, 4), np.float32))
