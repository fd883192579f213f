import numpy as np
import pytest
from test_scale import scale


@pytest.mark.parametrize(
    ("rows", "columns", "rule"), [(129, 64, "NK101"), (128, 60_000, "NK107")], ids=["partitions", "bytes"]
)
def test_what_the_kernel_refuses(run_kernel, expect_finding, rows, columns, rule):
    with expect_finding(rule, file="test_scale.py"):
        run_kernel(scale, np.zeros((rows, columns), np.float32), 2.0)


def test_the_sentence_that_a_user_reads(run_kernel, expect_finding):
    with expect_finding("NK101", match=r"has 129 partitions; a NeuronCore has 128") as expected:
        run_kernel(scale, np.zeros((129, 64), np.float32), 2.0)
    assert "nl.tile_size.pmax" in expected.finding.remedy


@pytest.mark.parametrize("chip", ["trn1", "trn2", "trn3"])
def test_the_limit_is_that_of_each_chip(run_kernel, expect_finding, chip):
    run_kernel(scale, np.zeros((128, 64), np.float32), 2.0, chip=chip)
    with expect_finding("NK101"):
        run_kernel(scale, np.zeros((129, 64), np.float32), 2.0, chip=chip)


def test_nothing_else_is_wrong(run_kernel):
    run_kernel(scale, np.zeros((128, 64), np.float32), 2.0, rules="report")
    assert run_kernel.run.findings == []
