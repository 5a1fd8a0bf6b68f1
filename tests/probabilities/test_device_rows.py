"""Probabilities on a device: the same answers to the last bit; here with tensors in the host's memory."""

import subprocess
import sys

import numpy as np
import pytest

import setwise
from setwise import APS, LAC, RAPS, SAPS, Calibration, Margin, conformalize
from setwise.row_noise import uniforms
from tests.conftest import candidates_from, labels_from, simplex

torch = pytest.importorskip("torch")
device_rows = pytest.importorskip("setwise.probabilities.device_rows")

SCORES = [LAC(), Margin(), APS(), APS(randomized=False), RAPS(penalty=0.07, free_ranks=1), SAPS()]
STRATEGIES = ["max", "min", "mean", "all", setwise.strategies.Mixture(mu=0.3)]


@pytest.fixture
def as_if_elsewhere(monkeypatch):
    """Tensors in the host's memory are treated as those of a GPU; blocks are small, so that there are several."""
    for module in ("conformal.conformalize", "calibration.base", "calibration.new_rows"):
        monkeypatch.setattr(f"setwise.{module}.on_device", torch.is_tensor)
    monkeypatch.setattr(device_rows, "_CELLS", 250)


@pytest.fixture(params=["float32", "float64", "ties"])
def rows(request, rng):
    p = simplex(rng, 300, 6, sharpness=3.0)
    if request.param == "ties":
        p = np.round(p * 20) / 20
        p[:, 0] += 1 - p.sum(axis=1)
        p = np.abs(p) / np.abs(p).sum(axis=1, keepdims=True)
        p[:40, :3], p[:40, 3:] = 0.0, 1 / 3
        p[40:60] = 1e-30, 3e-30, -0.0, 0.5, 0.5, 0.0
        p[60:70] = 1 / 6
    p = p.astype(np.float32 if request.param == "float32" else np.float64)
    return p, candidates_from(rng, labels_from(rng, p.astype(np.float64)), 6)


def same(found, wanted):
    """Every column of evidence, to the last bit."""
    ours, theirs = found.evidence.to_arrays(), wanted.evidence.to_arrays()
    assert ours.keys() == theirs.keys()
    for name, values in ours.items():
        if name == "total":
            np.testing.assert_allclose(values, theirs[name], rtol=1e-12)
            continue
        np.testing.assert_array_equal(values, theirs[name], err_msg=name)


@pytest.mark.parametrize("score", SCORES, ids=str)
@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
def test_calibration_is_the_same(score, strategy, rows, as_if_elsewhere):
    p, mask = rows
    tensor, held = torch.from_numpy(p), torch.from_numpy(mask)
    wanted = conformalize(p, mask, strategy, score, random_state=3)
    same(conformalize(tensor, held, strategy, score, random_state=3), wanted)
    same(conformalize(tensor, mask.argmax(axis=1), strategy, score, random_state=3),
         conformalize(p, mask.argmax(axis=1), strategy, score, random_state=3))  # fmt: skip


@pytest.mark.parametrize("score", SCORES, ids=str)
def test_sets_are_the_same(score, rows, as_if_elsewhere):
    p, mask = rows
    cal = conformalize(p[:150], mask[:150], "max", score, random_state=3)
    new, own = torch.from_numpy(p[150:]), mask[150:]
    for options in ({}, {"candidates": own}, {"allow_empty": False}, {"candidates": own, "allow_empty": False}):
        for level in (0.2, 0.6, 0.9):
            wanted = cal.predict_set(p[150:], level, **options)
            given = {"candidates": torch.from_numpy(own)} if "candidates" in options else {}
            found = cal.predict_mask(new, level, **{**options, **given})
            assert found.dtype == torch.bool
            np.testing.assert_array_equal(found.numpy(), wanted.to_mask())
            assert cal.predict_set(new, level, **options).to_lists() == wanted.to_lists()
            np.testing.assert_array_equal(cal.predict_mask(p[150:], level, **options), wanted.to_mask())


@pytest.mark.filterwarnings("ignore::setwise.SmallCalibrationWarning")
def test_levels_categories_weights_ids_and_thresholds_by_label_are_the_same(rows, as_if_elsewhere):
    p, mask = rows
    kinds = [
        ({"by": "predicted"}, {}),
        ({"by": "size"}, {"candidates": mask}),
        ({"by": np.arange(300) % 3}, {"by": np.arange(300) % 3}),
        ({"sample_weight": np.linspace(1, 2, 300)}, {"sample_weight": np.linspace(2, 1, 300)}),
        ({"groups": np.arange(300) // 3}, {}),
        ({"row_ids": np.arange(300)}, {"row_ids": np.arange(300, 600)}),
        ({"miss_rate": 0.02}, {}),
    ]
    tensor = torch.from_numpy(p)
    for score in ("lac", "aps"):
        for calibrated, asked in kinds:
            wanted = conformalize(p, mask, "max", score, random_state=1, **calibrated)
            found = conformalize(tensor, torch.from_numpy(mask), "max", score, random_state=1, **calibrated)
            same(found, wanted)
            for ours, theirs in zip(
                found.predict_mask(tensor, [0.6, 0.9], **asked),
                wanted.predict_set(p, [0.6, 0.9], **asked),
                strict=True,
            ):
                np.testing.assert_array_equal(ours.numpy(), theirs.to_mask())
        single = conformalize(p, mask.argmax(axis=1), "max", score, by="label", random_state=1)
        np.testing.assert_array_equal(single.predict_mask(tensor, 0.7).numpy(), single.predict_mask(p, 0.7))


def test_rows_without_candidates_are_dropped_or_filled(rows, as_if_elsewhere):
    p, mask = rows
    mask = mask.copy()
    mask[::7] = False
    with pytest.raises(ValueError, match="row 0 is empty"):
        conformalize(torch.from_numpy(p), torch.from_numpy(mask))
    for missing in ("drop", "full"):
        options = {"strategy": "mean", "conformity_score": "aps", "missing": missing, "random_state": 0}
        found = conformalize(torch.from_numpy(p), torch.from_numpy(mask), **options)
        same(found, conformalize(p, mask, **options))


def test_noise_is_the_same(rng):
    for dtype in (np.float32, np.float64):
        p = simplex(rng, 500, 7).astype(dtype)
        p[0, 0] = -0.0
        made = device_rows.DeviceRows(torch.from_numpy(p))
        np.testing.assert_array_equal(made.uniforms(5), uniforms(p, 5))
        np.testing.assert_array_equal(made.uniforms(2**62), uniforms(p, 2**62))
        np.testing.assert_array_equal(made.uniforms(5, np.arange(500)), uniforms(p, 5, np.arange(500)))


def test_other_precisions_are_rounded_as_arrays_are(rng, as_if_elsewhere):
    p = simplex(rng, 400, 5)
    mask = candidates_from(rng, labels_from(rng, p), 5)
    for given in ("float16", "float32", "float64"):
        cal = conformalize(torch.from_numpy(p.astype(given)), mask, "max", "aps", random_state=0)
        same(cal, conformalize(p.astype(given), mask, "max", "aps", random_state=0))
        for asked in ("float16", "float32", "float64"):
            new = p[::-1].astype(asked)
            found = cal.predict_mask(torch.from_numpy(new), 0.8)
            np.testing.assert_array_equal(found.numpy(), cal.predict_mask(new, 0.8))


def test_bad_tensors_are_refused_by_row(rng, as_if_elsewhere):
    p = torch.from_numpy(simplex(rng, 9000, 3))
    mask = torch.ones(9000, 3, dtype=torch.bool)
    cal = conformalize(p, mask)
    for row, values, said in (
        (8000, [torch.nan, 0.5, 0.5], "row 8000 holds nan in column 0"),
        (5, [-0.1, 0.6, 0.5], r"row 5 has entries from -0.1"),
        (6, [0.2, 0.2, 0.2], "row 6 sums to 0.6"),
        (7, [20.0, 30.0, 50.0], "row 7 sums to 100; these look like percentages"),
    ):
        broken = p.clone()
        broken[row] = torch.tensor(values, dtype=p.dtype)
        with pytest.raises(ValueError, match=said):
            conformalize(broken, mask)
        with pytest.raises(ValueError, match=said):
            cal.predict_mask(broken)
    unit = p.clone()
    unit[5000] = torch.tensor([0.0, 1.2, 0.3], dtype=p.dtype)
    with pytest.raises(ValueError, match="5000 has entries from 0 to 1.2, outside"):
        conformalize(unit, mask, conformity_score=LAC(domain="unit"))
    with pytest.raises(TypeError, match="bfloat16; use .float"):
        conformalize(p.bfloat16(), mask)
    with pytest.raises(ValueError, match="2 columns, but there are 3 classes"):
        cal.predict_mask(p[:, :2] / p[:, :2].sum(dim=1, keepdim=True))
    with pytest.raises(ValueError, match="shape"):
        cal.predict_mask(p[0])


def test_what_needs_the_host_says_so(rng, as_if_elsewhere):
    p = simplex(rng, 200, 3)
    mask = candidates_from(rng, labels_from(rng, p), 3)
    tensor = torch.from_numpy(p)
    for options in ({"strategy": "corrected", "assume": "uniform"}, {"strategy": "posterior"}):
        with pytest.raises(
            ValueError, match=r"this strategy is worked out on the host; pass prob.*cpu\(\).numpy\(\)"
        ):
            conformalize(tensor, mask, **options)
    for strategy in ("auto", "max"):
        with pytest.raises(ValueError, match=r"verified rows and votes are worked out on the host"):
            conformalize(tensor, mask, strategy, verified=[0] + [None] * 199)
        with pytest.raises(ValueError, match=r"verified rows and votes are worked out on the host"):
            conformalize(tensor, setwise.Votes.from_counts(mask.astype(int)), strategy)

    class Own(Margin):
        name = "own"

    with pytest.raises(ValueError, match=r"conformity_score: 'own' is computed on the host; pass"):
        conformalize(tensor, mask, conformity_score=Own())
    with pytest.raises(ValueError, match=r"conformity_score: 'rps' is computed on the host; pass"):
        conformalize(tensor, mask, conformity_score="rps")


def test_few_labels_come_as_positions_and_many_as_a_mask(rng):
    mask = torch.from_numpy(rng.random((50, 40)) < 0.02)
    for one in (mask, ~mask):
        sets = device_rows.label_sets(one, setwise.LabelSets.from_mask(mask.numpy()).vocabulary)
        assert (sets.to_mask() == one.numpy()).all()
        assert (sets.sizes == one.sum(dim=1).numpy()).all()
        assert (sets._mask is None) == (one is mask)


def test_arrays_do_without_torch():
    code = (
        "import sys, numpy as np, setwise\n"
        "P = np.random.default_rng(0).dirichlet([1, 1, 1], size=50)\n"
        "setwise.conformalize(P, P.argmax(axis=1)).predict_mask(P)\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("score", SCORES, ids=str)
def test_a_gpu_gives_the_same(score, rows, tmp_path):
    p, mask = rows
    tensor = torch.from_numpy(p).cuda()
    for strategy in STRATEGIES:
        wanted = conformalize(p, mask, strategy, score, random_state=3)
        found = conformalize(tensor, torch.from_numpy(mask).cuda(), strategy, score, random_state=3)
        same(found, wanted)
        found.save(tmp_path / "c.cal")
        found = Calibration.load(tmp_path / "c.cal")
        for level in (0.2, 0.6, 0.9):
            answer = found.predict_mask(tensor, level)
            assert answer.device == tensor.device
            np.testing.assert_array_equal(answer.cpu().numpy(), wanted.predict_mask(p, level))
            assert found.predict_set(tensor, level).to_lists() == wanted.predict_set(p, level).to_lists()
