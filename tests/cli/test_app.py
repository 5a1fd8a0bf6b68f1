"""What holds for every command: help, exit statuses, errors in one line."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from setwise.cli.app import run

KINDS_OF_DAMAGE = {
    "no zip": lambda b: b"PK\x03\x04" + b[40:],
    "empty": lambda _: b"",
    "half": lambda b: b[: len(b) // 2],
    "flipped": lambda b: b[:200] + bytes([b[200] ^ 255]) + b[201:],
    "a pickle": lambda _: b"\x80\x04cos\nsystem\n(S'echo'\ntR.",
}


@pytest.mark.parametrize("damage", list(KINDS_OF_DAMAGE))
def test_damaged_files_are_named_and_never_called_a_fault_of_ours(damage, saved_models, tmp_path, capsys):
    whole = (saved_models / "max.cal").read_bytes()
    (tmp_path / "x.cal").write_bytes(KINDS_OF_DAMAGE[damage](whole))
    np.savez(tmp_path / "whole.npz", X=np.zeros((3, 1)))
    (tmp_path / "x.npz").write_bytes(KINDS_OF_DAMAGE[damage]((tmp_path / "whole.npz").read_bytes()))
    pq.write_table(pa.table({"p:cat": [1.0]}), tmp_path / "p.parquet")
    for arguments in (
        ["predict", tmp_path / "x.cal", "--probabilities", tmp_path / "p.parquet", "--out", tmp_path / "o.csv"],
        ["inspect", tmp_path / "x.npz", "--candidates", "s"],
    ):
        assert run([*map(str, arguments)]) == 2
        said = capsys.readouterr().err
        assert "fault in setwise" not in said
        assert "/x." in said


def test_help_works_with_the_installed_click(capsys):
    assert run(["predict", "--help"]) == 0
    assert "--out" in capsys.readouterr().out
