"""The trainer: each model alone and together, order, batches, divergence, state."""

import math

import pytest
import torch

from setwise.learn.batches import Resident
from setwise.learn.losses import LOSSES, as_loss
from setwise.learn.networks import Single, _dropout, build_network
from setwise.learn.scaling import Scaling, fit_scaling
from setwise.learn.seeds import permutations
from setwise.learn.trainer import DivergedError, Plan, Trainer, threads_for

CPU = torch.device("cpu")


def some_data(n=90, d=9, k=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(k, (n,), generator=generator)
    x = torch.randn(n, d, generator=generator, dtype=torch.float64)
    x[:, :k] += 3 * torch.nn.functional.one_hot(y, k)
    candidates = torch.rand(n, k, generator=generator) < 0.3
    candidates[torch.arange(n), y] = True
    return x, candidates, y


def trainer(seeds, x, candidates, *, network="mlp", loss="proden", rows=None, dtype=torch.float64, **plan):
    n_models = len(seeds)
    n = len(x) if rows is None else rows.shape[1]
    net = build_network(network, seeds, x.shape[1:], candidates.shape[-1], hidden_sizes=(8, 8)).to(dtype)
    return Trainer(
        net,
        Scaling(dtype=dtype),
        as_loss(loss, n, n_models),
        Resident(x, rows),
        candidates if candidates.ndim == 3 else candidates.expand(n_models, -1, -1),
        plan=Plan(**{"batch_size": 30, "epochs": 7, "learning_rate": 0.1} | plan),
        seeds=seeds,
    )


@pytest.mark.parametrize("network", ["linear", "mlp", "cnn"])
@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adamw"])
def test_each_of_many_models_follows_the_path_it_follows_alone(network, optimizer):
    x, _, y = some_data(100, 16)
    seeds = [3, 4, 5]
    rows = torch.stack([torch.randperm(100, generator=torch.Generator().manual_seed(m))[:90] for m in range(3)])
    candidates = torch.stack([some_data(100, 16, seed=m)[1] for m in range(3)])
    candidates[:, torch.arange(100), y] = True
    candidates = torch.stack([candidates[m, rows[m]] for m in range(3)])
    plan = {"network": network, "optimizer": optimizer, "learning_rate": 0.05, "weight_decay": 0.01}  # for 21 steps
    together = trainer(seeds, x, candidates, rows=rows, **plan).fit()
    for m, seed in enumerate(seeds):
        alone = trainer([seed], x, candidates[m : m + 1], rows=rows[m : m + 1], **plan).fit()
        for one, many in zip(alone.tensors()[:-1], together.tensors()[:-1], strict=True):
            if many.ndim and len(many) == len(seeds):  # what all share, such as the step count, has length one
                torch.testing.assert_close(many[m], one[0], rtol=1e-8, atol=1e-8)
        assert not torch.equal(together.network.output.weight[m], together.network.output.weight[m - 1])


def test_the_learning_rate_falls_along_a_cosine_as_long_as_asked_for():
    x, candidates, _ = some_data()

    def rates(**plan):
        model, seen = trainer([0], x, candidates, network="linear", epochs=4, **plan), []
        model.hooks.append(lambda t: seen.append(float(t.optimizer.rate)))
        model.fit()
        return seen

    def cosine(horizon):
        return [0.05 * (1 + math.cos(math.pi * epoch / horizon)) for epoch in range(4)]

    assert rates() == pytest.approx(cosine(4))
    assert rates(annealing_epochs=40) == pytest.approx(cosine(40))
    assert rates(annealing_epochs=0) == pytest.approx(4 * [0.1])
    with pytest.raises(ValueError, match=r"annealing_epochs: 3 is fewer than epochs \(4\)"):
        rates(annealing_epochs=3)


@pytest.mark.parametrize("loss", list(LOSSES))
def test_every_loss_trains_and_its_loss_falls(loss):
    x, candidates, y = some_data()
    model = trainer([0], x, candidates, loss=loss, network="linear", dtype=torch.float32)
    model.run_epoch()
    first = float(model.losses)
    model.fit()
    assert float(model.losses) < first
    assert (model.logits().argmax(-1)[0] == y).float().mean() > 0.5


def test_the_order_is_a_permutation_and_depends_on_seed_and_epoch_alone():
    order = permutations([7, 8], 3, 1000, CPU)
    assert torch.equal(order.sort().values, torch.arange(1000).expand(2, -1))
    assert torch.equal(order[1], permutations([8], 3, 1000, CPU)[0])
    assert not torch.equal(order[0], order[1])
    assert not torch.equal(order[0], permutations([7], 4, 1000, CPU)[0])
    first = torch.cat([permutations([s], 0, 100, CPU)[:, 0] for s in range(2000)])
    counts = torch.bincount(first, minlength=100)
    assert ((counts - 20.0) ** 2 / 20).sum() < 160  # chi-square, 99 degrees of freedom


def test_one_plain_torch_loop_gives_the_same_weights():
    x, candidates, _ = some_data()
    ours = trainer([5], x, candidates, epochs=3, weight_decay=0.01).fit()
    net = build_network("mlp", [5], x.shape[1:], 4, hidden_sizes=(8, 8)).double()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 3)
    weights = candidates.double() / candidates.sum(-1, keepdim=True)
    for epoch in range(3):
        order = permutations([5], epoch, len(x), CPU)[0]
        for batch in order.split(30):
            logits = net(x[None, batch])[0]
            loss = -(weights[batch] * torch.log_softmax(logits, -1)).sum(-1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            p = torch.softmax(logits.detach(), -1) * candidates[batch]
            weights[batch] = p / p.sum(-1, keepdim=True)
        schedule.step()
    for a, b in zip(ours.network.parameters(), net.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-8)


def test_bytes_stay_bytes_and_are_scaled_in_the_step():
    pixels = torch.randint(0, 256, (60, 16), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    candidates = some_data(60)[1]
    source = Resident(pixels)
    net = build_network("linear", [0], (16,), 4)
    model = Trainer(
        net,
        fit_scaling((127.5, 73.9), ()),
        as_loss("cc", 60, 1),
        source,
        candidates[None],
        plan=Plan(epochs=2),
        seeds=[0],
    ).fit()
    assert source.features.dtype == torch.uint8
    expected = net((pixels[None].float() - 127.5) / 73.9)
    torch.testing.assert_close(model.logits(), expected.detach())


def test_a_last_batch_of_one_example_joins_the_one_before():
    x, candidates, _ = some_data(61)
    model = trainer([0], x, candidates)
    assert model.bounds() == [(0, 30), (30, 61)]
    assert trainer([0], *some_data(1)[:2]).bounds() == [(0, 1)]
    model.fit()


def test_a_diverging_loss_names_the_epoch_and_a_remedy():
    x, candidates, _ = some_data()
    model = trainer([0], 1e30 * x, candidates, network="linear", learning_rate=1e300)
    with pytest.raises(DivergedError, match=r"epoch 1 of 7; lower learning_rate"):
        model.fit()


def test_a_network_of_the_wrong_width_is_refused():
    x, candidates, _ = some_data()
    with pytest.raises(ValueError, match=r"shape \(1, 3\), expected \(1, 4\)"):
        Trainer(
            Single(torch.nn.Linear(9, 3).double()),
            Scaling(dtype=torch.float64),
            as_loss("cc", 90, 1),
            Resident(x),
            candidates[None],
            plan=Plan(),
            seeds=[0],
        )


def test_bfloat16_learns(bfloat16):
    x, candidates, y = some_data(n=300)
    model = trainer([0], x, candidates, dtype=torch.float32, precision="bfloat16", epochs=20).fit()
    assert all(p.dtype == torch.float32 for p in model.network.parameters())
    assert (model.logits().argmax(-1)[0] == y).float().mean() > 0.8


@pytest.mark.skipif(not torch.cuda.is_available(), reason="NOT TESTED: no GPU")
def test_training_on_a_gpu_follows_that_on_a_cpu():
    x, candidates, _ = some_data(97)
    plain = trainer([0, 1], x, candidates).fit()
    net = build_network("mlp", [0, 1], x.shape[1:], 4, hidden_sizes=(8, 8)).double().cuda()
    there = Trainer(
        net,
        Scaling(dtype=torch.float64).cuda(),
        as_loss("proden", 97, 2),
        Resident(x.cuda()),
        candidates.cuda().expand(2, -1, -1),
        plan=Plan(7, 30, learning_rate=0.1),
        seeds=[0, 1],
    ).fit()
    for a, b in zip(plain.tensors(), there.tensors(), strict=True):
        torch.testing.assert_close(a, b.cpu(), rtol=1e-6, atol=1e-6)


def test_dropout_keeps_the_share_and_the_mean():
    torch.manual_seed(0)
    dropped = _dropout(torch.ones(400, 301), 0.3)
    assert abs(float((dropped == 0).double().mean()) - 0.3) < 0.005
    assert abs(float(dropped.mean()) - 1) < 0.01
    assert not torch.equal(dropped, _dropout(torch.ones(400, 301), 0.3))


def test_small_steps_run_on_one_thread_unless_the_user_said_how_many(monkeypatch):
    cpu, seen = torch.device("cpu"), []
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    monkeypatch.setattr(torch, "set_num_threads", seen.append)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    with threads_for(10_000, cpu):
        assert seen == [1]
    assert seen == [1, 4]
    with threads_for(10**9, cpu):
        assert seen == [1, 4]
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    with threads_for(10_000, cpu):
        assert seen == [1, 4]
