"""The rows of a cell: splits, contamination, supermodels."""

import numpy as np
import torch
from reproduction.cells import Cell, cells_of
from reproduction.material import Material, Stages


def material():
    return Material(torch.device("cpu"), Stages())


def parts(prepared):
    return [prepared.split.train, prepared.split.calibration, prepared.split.test]


def test_an_official_split_tests_on_the_official_rows(small_images):
    (made,) = material().prepare([Cell("mnist", "random_p0.1", 3)])
    train, calibration, test = parts(made)
    assert (len(train), len(calibration)) == (450, 50)
    assert np.array_equal(test, np.arange(500, 600))
    assert np.array_equal(np.sort(np.concatenate([train, calibration])), np.arange(500))


def test_a_resplit_has_the_same_sizes_and_tests_on_rows_of_both(small_images):
    (made,) = material().prepare([Cell("mnist", "random_p0.1", 3, "resplit")])
    train, calibration, test = parts(made)
    assert [len(part) for part in (train, calibration, test)] == [450, 50, 100]
    assert np.array_equal(np.sort(np.concatenate([train, calibration, test])), np.arange(600))
    assert 0 < (test >= 500).sum() < 100


def test_real_sets_are_split_as_in_the_paper(benchmarks):
    (made,) = material().prepare([Cell("lost", "original", 0)])
    assert [len(part) for part in parts(made)] == [719, 179, 224]
    assert np.array_equal(np.sort(np.concatenate(parts(made))), np.arange(1122))


def test_contamination_keeps_the_truth_and_covers_test_rows_too(small_images):
    cells = [*cells_of(2, range(1), quick=True), *cells_of(4, range(1), quick=True)]
    for made in material().prepare(cells):
        assert len(made.candidates) == 600
        assert made.candidates.contains(made.data.y).all()
        assert made.candidates.sizes.min() >= 2


def test_random_contamination_is_the_same_for_both_splits_and_differs_by_seed(small_images):
    cells = [Cell("mnist", "random_p0.1", s, p) for s, p in ((0, "official"), (0, "resplit"), (1, "official"))]
    first, second, third = material().prepare(cells)
    assert first.candidates == second.candidates
    assert first.candidates != third.candidates


def test_data_sets_do_not_share_their_noise(small_images):
    first, second = material().prepare([Cell(data, "random_p0.1", 0) for data in ("mnist", "kmnist")])
    assert first.candidates.sizes.tolist() != second.candidates.sizes.tolist()


def test_the_supermodel_of_a_resplit_knows_neither_calibration_nor_test_rows(small_images, monkeypatch):
    seen = {}
    trained = Material._trained

    def spy(self, cells):
        from reproduction.material import _supermodel_rows

        seen.update({cell.protocol: set(_supermodel_rows(cell, self.data(cell.data)).tolist()) for cell in cells})
        return trained(self, cells)

    monkeypatch.setattr(Material, "_trained", spy)
    cells = [Cell("mnist", "instance_dependent", 0, p, supermodel_epochs=1) for p in ("official", "resplit")]
    _, resplit = material().prepare(cells)
    assert seen["official"] == set(range(500))
    assert seen["resplit"] == set(resplit.split.train.tolist())


def test_supermodels_are_trained_once(small_images, monkeypatch):
    calls = []
    trained = Material._trained
    monkeypatch.setattr(Material, "_trained", lambda self, cells: calls.append(len(cells)) or trained(self, cells))
    own = material()
    own.prepare(cells_of(6, range(2)))
    own.prepare(cells_of(4, range(2), quick=True))
    assert calls == [6]


def test_a_supermodel_in_a_stack_is_the_one_it_would_be_alone(small_images):
    cells = cells_of(6, range(2))
    together, alone = material(), material()
    together.prepare(cells)
    alone.prepare(cells[3:4])
    ours, other = together.supermodel(cells[3]), alone.supermodel(cells[3])
    assert np.allclose(ours.probabilities, other.probabilities, atol=1e-3)
    assert ours.train_accuracy > 50
