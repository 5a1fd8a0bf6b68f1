"""What a third attack found on the tables that are read and written: a test for each fault."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from setwise import LabelSets, conformalize
from setwise.data import read_sets, write_sets
from setwise.errors import InputError
from tests.scale.conftest import CLASSES, done, rows

P_NAMES = [f"p:{label}" for label in CLASSES]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a calibration m.cal; commands run in it."""
    monkeypatch.chdir(tmp_path)
    P, y, candidates = rows(200, 0)
    verified = np.where(np.arange(200) % 3 == 0, y.astype(object), None)
    conformalize(P, candidates, classes=CLASSES, verified=verified, random_state=0).save("m.cal")
    return tmp_path


def new(n=20, **others):
    """A table of probabilities and other columns."""
    return pa.table(dict(zip(P_NAMES, rows(n, 5)[0].T, strict=True)) | others)


# ---------------------------------------------------------------------------- columns called like p-values


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_columns_of_the_user_that_are_called_like_p_values_are_not_taken_for_them(suffix, folder, capsys):
    own = np.random.default_rng(1).dirichlet(np.ones(4), size=20)
    carried = {**dict(zip(P_NAMES, own.T, strict=True)), "truth": rows(20, 5)[1].tolist()}
    sets = LabelSets.from_lists([["owl"]] * 20, classes=CLASSES)
    write_sets(f"s{suffix}", sets, carry=carried)
    right = carried["truth"].count("owl") / 20
    assert done(capsys, "evaluate", f"s{suffix}", "--truth", "truth")["coverage"] == right
    done(capsys, "report", f"s{suffix}", "--truth", "truth", "--out", "r.html")
    assert f"{right:.1%}) have their true label in the set" in (folder / "r.html").read_text()
    with pytest.raises(InputError, match=r"column 'p:\w+' already, and the p-values need it; rename or remove it"):
        write_sets(f"again{suffix}", sets, carry=carried, p_values=own)
    assert not (folder / f"again{suffix}").exists()


def test_p_values_are_refused_beside_carried_arrays_of_their_names(folder):
    with pytest.raises(InputError, match="the p-values need it"):
        write_sets("s.npz", LabelSets.from_lists([["owl"]]), carry={"p:owl": [0.5]}, p_values=[[1.0]])


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_p_values_that_stand_behind_their_sets_are_used_and_others_there_are_not(suffix, folder, capsys):
    pq.write_table(new(truth=rows(20, 5)[1].tolist()), "n.parquet")
    done(capsys, "predict", "m.cal", "--probabilities", "n.parquet", "--p-values", "--out", f"s{suffix}")
    assert done(capsys, "report", f"s{suffix}", "--truth", "truth", "--out", "r.html")
    with_slider = (folder / "r.html").read_text()
    sets = read_sets(f"s{suffix}", classes=CLASSES)
    write_sets(f"t{suffix}", sets, p_values=np.random.default_rng(1).dirichlet(np.ones(4), size=20))
    capsys.readouterr()
    done(capsys, "report", f"t{suffix}", "--out", "t.html")
    assert 'type="range"' in with_slider
    assert 'type="range"' not in (folder / "t.html").read_text()
