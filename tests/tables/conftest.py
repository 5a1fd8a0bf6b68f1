"""A folder with a calibration, and tables of new rows for it."""

import numpy as np
import pyarrow as pa
import pytest

from setwise import conformalize
from tests.streams.conftest import CLASSES, rows

P_NAMES = [f"p:{label}" for label in CLASSES]


@pytest.fixture
def calibrated_folder(tmp_path, monkeypatch):
    """A folder with a calibration m.cal; commands run in it."""
    monkeypatch.chdir(tmp_path)
    P, y, candidates = rows(200, 0)
    verified = np.where(np.arange(200) % 3 == 0, y.astype(object), None)
    conformalize(P, candidates, classes=CLASSES, verified=verified, random_state=0).save("m.cal")
    return tmp_path


def new_table(n=20, **others):
    """A table of probabilities and other columns."""
    return pa.table(dict(zip(P_NAMES, rows(n, 5)[0].T, strict=True)) | others)


def answered_task(number, *choices):
    """A task of Label Studio that so many annotators answered."""
    given = [
        {"completed_by": who, "result": [{"from_name": "c", "type": "choices", "value": {"choices": [choice]}}]}
        for who, choice in enumerate(choices)
    ]
    return {"id": number, "data": {"id": f"t{number}"}, "annotations": given}
