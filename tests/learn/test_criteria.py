"""Criteria that choose a model without any true label."""

import torch

from setwise.learn import (
    approximated_accuracy,
    covering_rate,
)
from tests.toy_data import some_rows


def test_the_criteria_need_no_truth_and_order_models():
    _, candidates, y = some_rows()
    good, mask = 5 * torch.eye(4)[torch.as_tensor(y)], torch.as_tensor(candidates)
    bad = good.roll(1, dims=-1)
    for criterion in (covering_rate, approximated_accuracy):
        assert criterion(good, mask) > 0.9
        assert criterion(torch.stack([good, bad]), mask.expand(2, -1, -1))[1] < 0.6
