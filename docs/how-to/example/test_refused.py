import numpy as np
import pytest
from test_scale import scale

import nkitools


@pytest.mark.sim
def test_a_tile_has_128_partitions_at_most():
    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(scale, np.zeros((256, 64), np.float32), 2.0)
    assert caught.value.finding.rule == "NK101"
