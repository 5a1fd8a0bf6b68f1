"""Experiments as data: which cells a table has, and that a changed setting is another cell."""

from dataclasses import replace

import pytest
from reproduction.cell_stacks import stacks
from reproduction.cells import Cell, cells_of, from_settings
from reproduction.presets import PRESETS

LOST = Cell("lost", "original", 0, preset="paper-lost", epochs=200)


def test_tables_have_the_cells_of_the_paper():
    assert [len(cells_of(table, range(5))) for table in (1, 2, 3, 4, 5, 6)] == [52, 15, 15, 15, 35, 15]
    both = cells_of(4, range(5), protocols=("official", "resplit"), variants=("paper", "text"))
    assert len({cell.key() for cell in both}) == 45
    assert {cell.protocol for cell in both if cell.variant == "text"} == {"official"}
    assert {cell.epochs for cell in cells_of(2, range(5))} == {50}
    assert {cell.epochs for cell in cells_of(5, range(5))} == {200}
    assert {cell.epochs for table in (2, 5) for cell in cells_of(table, range(1), variants=("long",))} == {500}


def test_the_variants_are_the_settings_they_are_named_after():
    def settings(variant):
        learner = cells_of(3, range(1), variants=(variant,))[0].learner()
        return [learner[name] for name in ("epochs", "annealing_epochs", "learning_rate", "shuffle")]

    assert settings("paper") == [50, 500, 0.01, False]
    assert settings("annealed") == [100, None, 0.01, False]
    assert settings("text") == [100, None, 0.1, True]
    assert settings("long") == [500, 500, 0.01, False]
    assert cells_of(5, range(1), variants=("annealed", "text")) == []


def test_the_cells_of_table_6_are_among_those_of_table_1():
    assert set(cells_of(6, range(3))) < set(cells_of(1, range(3)))


def test_quick_cells_are_other_cells_than_full_ones():
    quick, full = ({cell.key() for cell in cells_of(2, range(1), quick=q)} for q in (True, False))
    assert not quick & full


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"epochs": 199},
        {"data": "msrcv2"},
        {"protocol": "resplit"},
        {"preset": "paper-msrcv2"},
        {"epsilon": 0.2},
        {"overrides": (("learning_rate", 0.1),)},
    ],
    ids=str,
)
def test_a_changed_setting_is_another_cell(change):
    assert replace(LOST, **change).key() != LOST.key()


def test_a_preset_with_other_content_is_another_cell(monkeypatch):
    before = LOST.key()
    monkeypatch.setitem(PRESETS, "paper-lost", PRESETS["paper-lost"] | {"weight_decay": 1e-9})
    assert LOST.key() != before


def test_a_key_is_readable_and_stays_the_same():
    assert LOST.key().startswith("lost-original-official-paper-200-s0-")
    assert LOST.key() == replace(LOST).key()


@pytest.mark.parametrize("table", [1, 2, 4, 5])
def test_a_cell_can_be_made_again_from_its_settings(table):
    for cell in cells_of(table, range(2), variants=("paper", "text")):
        assert from_settings(cell.settings()) == cell


def test_a_table_that_the_paper_does_not_have_is_an_error():
    with pytest.raises(ValueError, match="table: 7 is not one of the paper's"):
        cells_of(7, range(1))


def test_cells_of_one_shape_are_one_stack_on_a_gpu():
    cells = [cell for table in (2, 3, 4) for cell in cells_of(table, range(5), protocols=("official", "resplit"))]
    assert [len(stack.cells) for stack in stacks(cells, "cuda")] == [60, 30]
    few = [len(stack.cells) for stack in stacks(cells, "cpu")]
    assert sum(few) == 90
    assert max(few) <= 9


def test_shuffled_models_and_real_sets_are_stacks_of_their_own():
    images = cells_of(2, range(2), variants=("paper", "text"))
    assert sorted(len(stack.cells) for stack in stacks(images, "cuda")) == [6, 6]
    real = stacks(cells_of(5, range(5)), "cuda")
    assert [len(stack.cells) for stack in real] == 7 * [5]
    assert all(len({cell.data for cell in stack.cells}) == 1 for stack in real)
