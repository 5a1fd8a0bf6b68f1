"""Losses against a slow float64 reference, their gradients, and the ends of the number range."""

import math
from functools import partial

import numpy as np
import pytest
import torch

from setwise.learn.losses import LOSSES, CandidateLoss, MeritLoss, ProdenLoss, RCLoss, as_loss, masked_softmax

NAMES = list(LOSSES)


def some_batch(seed=0, shape=(6, 5), scale=2.0):
    generator = torch.Generator().manual_seed(seed)
    logits = scale * torch.randn(*shape, dtype=torch.float64, generator=generator)
    candidates = torch.rand(*shape, generator=generator) < 0.4
    candidates[..., 0] |= ~candidates.any(dim=-1)
    return logits, candidates


def reference(name, z, s, w=None):
    """One example, in plain Python: logits, candidates, and the logits remembered of it."""
    total = math.log(sum(math.exp(v - max(z)) for v in z)) + max(z)
    logp = [v - total for v in z]
    inside = [k for k in range(len(z)) if s[k]]
    outside = [k for k in range(len(z)) if not s[k]]
    old = [0.0] * len(z) if w is None else w

    def share(values, among, beta=1.0):
        e = {k: math.exp(beta * values[k]) for k in among}
        return {k: v / sum(e.values()) for k, v in e.items()}

    if name in {"proden", "rc"}:
        return -sum(v * logp[k] for k, v in share(old, inside).items())
    if name == "cc":
        return -math.log(sum(math.exp(logp[k]) for k in inside))
    if name == "naive":
        return -sum(logp[k] for k in inside) / len(inside)
    if name == "merit":
        return -sum(v * logp[k] for k, v in share(z, inside, 0.8).items())
    if name == "osl":
        return min(-logp[k] for k in inside)
    if name == "gce":
        return sum((1 - math.exp(logp[k]) ** 0.7) / 0.7 for k in inside) / len(inside)
    if name == "lws":
        good = sum(v / (1 + math.exp(z[k])) for k, v in share(old, inside).items())
        bad = sum(v / (1 + math.exp(-z[k])) for k, v in share(old, outside).items()) if outside else 0.0
        return good + bad
    if w is None:  # cavl, first time
        return -sum(logp[k] for k in inside) / len(inside)
    return -logp[max(inside, key=lambda k: z[k] * abs(1 - z[k]))]


@pytest.mark.parametrize("name", NAMES)
def test_a_loss_equals_its_definition_on_first_and_second_sight(name):
    loss = as_loss(name, 6, 1)
    index = torch.arange(6)
    first, candidates = some_batch(1)
    second, _ = some_batch(2)
    seen = loss(first, candidates, index)
    loss.update(first, index)
    again = loss(second, candidates, index)
    expected = [reference(name, z.tolist(), s.tolist()) for z, s in zip(first, candidates, strict=True)]
    assert float(seen) == pytest.approx(np.mean(expected), abs=1e-12)
    expected = [
        reference(name, z.tolist(), s.tolist(), w.tolist())
        for z, s, w in zip(second, candidates, first, strict=True)
    ]
    assert float(again) == pytest.approx(np.mean(expected), abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_a_gradient_is_the_finite_difference_of_the_value_with_its_weights_held(name):
    loss = as_loss(name, 6, 1)
    index = torch.arange(6)
    first, candidates = some_batch(3)
    loss.update(first, index)
    logits = some_batch(4)[0].requires_grad_()
    (gradient,) = torch.autograd.grad(loss.value(logits, candidates, loss.recall(logits, index)), logits)
    held = logits.detach()

    def value(z):
        if name == "merit":  # weights of the point itself, not of the moved one
            frozen = CandidateLoss(beta=0.8, lag="forward")
            return float(frozen.value(z, candidates, held))
        if name == "cavl":
            chosen = (held * (1 - held).abs()).masked_fill(~candidates, -torch.inf).argmax(-1)
            return float(torch.nn.functional.cross_entropy(z, chosen))
        return float(loss.value(z, candidates, loss.recall(z, index)))

    step = 1e-6
    for i in range(held.numel()):
        shift = torch.zeros(held.numel(), dtype=torch.float64)
        shift[i] = step
        shift = shift.view_as(held)
        slope = (value(held + shift) - value(held - shift)) / (2 * step)
        assert float(gradient.view(-1)[i]) == pytest.approx(slope, abs=1e-8)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_extreme_logits_give_finite_losses_and_gradients(name, dtype):
    extreme = torch.tensor([[1e4, -1e4, 0.0, 3.0], [-1e4, 1e4, 1e4, -1e4], [1e4, 1e4, 1e4, 1e4]])
    logits = extreme.to(dtype).requires_grad_()
    candidates = torch.tensor([[False, True, True, False], [True, False, False, True], [True] * 4])
    loss = as_loss(name, 3, 1)
    for _ in range(2):
        value = loss(logits, candidates, torch.arange(3))
        (gradient,) = torch.autograd.grad(value, logits)
        loss.update(logits, torch.arange(3))
        assert torch.isfinite(value)
        assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_full_set_and_a_singleton_behave(name):
    logits = torch.tensor([[1.0, -2.0, 0.5]], dtype=torch.float64)
    full = as_loss(name, 1, 1)(logits, torch.ones(1, 3, dtype=torch.bool), torch.zeros(1, dtype=torch.long))
    assert torch.isfinite(full)
    one = torch.tensor([[True, False, False]])
    single = as_loss(name, 1, 1)(logits, one, torch.zeros(1, dtype=torch.long))
    if name in {"gce", "lws"}:
        assert float(single) == pytest.approx(reference(name, [1.0, -2.0, 0.5], [True, False, False]))
    else:
        assert float(single) == pytest.approx(float(torch.nn.functional.cross_entropy(logits, torch.tensor([0]))))


def test_a_full_set_carries_no_likelihood():
    logits = torch.tensor([[1.0, -2.0, 0.5]], dtype=torch.float64, requires_grad=True)
    value = as_loss("cc", 1, 1)(logits, torch.ones(1, 3, dtype=torch.bool))
    (gradient,) = torch.autograd.grad(value, logits)
    assert value.abs() < 1e-12
    assert gradient.abs().max() < 1e-12


@pytest.mark.parametrize("make", [ProdenLoss, RCLoss])
def test_a_candidate_whose_probability_was_zero_comes_back(make):
    loss, index = make(n_examples=1), torch.zeros(1, dtype=torch.long)
    candidates = torch.tensor([[True, True, False]])
    for logits in (torch.tensor([[1e4, -1e4, 0.0]]), torch.tensor([[0.0, 3.0, 0.0]])):
        loss(logits, candidates, index)
        loss.update(logits, index)
    weights = masked_softmax(loss.recall(torch.zeros(1, 3), index), candidates)
    assert weights[0, 1] > 0.9


@pytest.mark.parametrize("name", NAMES)
def test_many_models_at_once_equal_each_alone(name):
    logits, candidates = some_batch(5, (3, 6, 4))
    index = torch.stack([torch.randperm(10, generator=torch.Generator().manual_seed(m))[:6] for m in range(3)])
    together = as_loss(name, 10, 3)
    alone = [as_loss(name, 10, 1) for _ in range(3)]
    for _ in range(2):
        total = together(logits, candidates, index)
        together.update(logits, index)
        parts = []
        for m, loss in enumerate(alone):
            parts.append(loss(logits[m], candidates[m], index[m]))
            loss.update(logits[m], index[m])
        assert float(total) == pytest.approx(float(sum(parts)), abs=1e-12)


def test_proden_lags_and_rc_waits_for_its_update():
    logits, candidates = some_batch(6)
    index = torch.arange(6)
    proden, rc = ProdenLoss(6), RCLoss(6)
    assert float(proden(logits, candidates, index)) == float(rc(logits, candidates, index))
    assert float(proden(logits, candidates, index)) != float(rc(logits, candidates, index))
    rc.update(logits, index)
    assert float(proden(logits, candidates, index)) == float(rc(logits, candidates, index))


def test_a_bounded_loss_stays_bounded_when_the_truth_is_no_candidate():
    logits = torch.tensor([[50.0, 0.0, 0.0]])
    assert float(as_loss("gce", 1, 1)(logits, torch.tensor([[False, True, True]]))) <= 1 / 0.7 + 1e-6


def test_errors_say_what_to_do():
    logits, candidates = some_batch(7)
    with pytest.raises(ValueError, match="n_examples=…"):
        ProdenLoss()(logits, candidates, torch.arange(6))
    with pytest.raises(ValueError, match="pass index"):
        ProdenLoss(6)(logits, candidates)
    with pytest.raises(ValueError, match="one position"):
        ProdenLoss(6)(logits, candidates, torch.arange(5))
    with pytest.raises(ValueError, match="use one of proden"):
        as_loss("prodigy", 6, 1)
    with pytest.raises(TypeError, match="partial"):
        as_loss(3, 6, 1)
    with pytest.raises(ValueError, match="'fresh', 'forward' or 'step'"):
        CandidateLoss(lag="sometimes")
    assert as_loss(partial(MeritLoss, beta=0.5), 6, 1).beta == 0.5
