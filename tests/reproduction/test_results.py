"""Finished cells on disk."""

import json

import pytest
from reproduction.cells import Cell, cells_of
from reproduction.results import load, missing, save, shortened

from .conftest import result

LOST = Cell("lost", "original", 0, preset="paper-lost", epochs=200)


def test_a_cell_is_read_as_it_was_written(tmp_path):
    written = result(LOST, size=1.25)
    save(written, tmp_path)
    (read,) = load(tmp_path)
    assert read.cell == LOST
    assert read.to_dict() == written.to_dict()
    assert read.environment["device"] == "CPU"


def test_what_is_missing_is_what_has_no_file(tmp_path):
    cells = cells_of(2, range(2))
    for cell in cells[:2]:
        save(result(cell), tmp_path)
    assert missing([*cells, *cells], tmp_path) == cells[2:]
    assert {r.cell for r in load(tmp_path)} == set(cells[:2])


def test_nothing_is_left_beside_a_written_cell_and_half_written_ones_are_not_read(tmp_path):
    save(result(LOST), tmp_path)
    (tmp_path / "cells" / ".lost.json.0a1b.tmp").write_text("{")
    assert len(load(tmp_path)) == 1
    assert [p.name for p in (tmp_path / "cells").glob("*.json")] == [f"{LOST.key()}.json"]


@pytest.mark.parametrize("content", ["{", "[]", '{"format": "other"}', '{"settings": {}}'])
def test_a_damaged_file_is_named_with_the_remedy(tmp_path, content):
    (tmp_path / "cells").mkdir()
    (tmp_path / "cells" / "some.json").write_text(content)
    with pytest.raises(ValueError, match=r"some\.json: .* remove it to compute it anew"):
        load(tmp_path)


def test_a_file_of_another_format_is_refused(tmp_path):
    path = save(result(LOST), tmp_path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": "setwise-paper-cell-2"}))
    with pytest.raises(ValueError, match="setwise-paper-cell-2"):
        load(tmp_path)


def test_numbers_are_kept_to_ten_digits():
    assert shortened([1 / 3, 1e-30 / 3, 5, True, "a", None]) == [0.3333333333, 3.333333333e-31, 5, True, "a", None]
