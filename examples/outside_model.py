"""A model that lives elsewhere (ONNX, a web service, R): its probabilities arrive as a file, one column a class.

Here the file is written by a stand-in. With ONNX Runtime the two lines that make probabilities would be

    session = onnxruntime.InferenceSession("model.onnx")
    (probabilities,) = session.run(["probabilities"], {"X": X.astype("float32")})

and on the command line everything below is

    setwise conformalize --probabilities scores.parquet --candidates answers.csv --out model.cal
    setwise predict model.cal --probabilities new.parquet --out sets.csv
"""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import setwise
from setwise.data import read_table, write_sets

CLASSES = ["wren", "owl", "ant"]  # the order of the model's outputs


def scores(path, n, rng):
    """Writes probabilities as the model outside would, and returns the true labels."""
    y = rng.integers(0, 3, n)
    logits = 2 * np.eye(3)[y] + rng.normal(size=(n, 3))
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    pq.write_table(pa.table(dict(zip(CLASSES, p.T.astype(np.float32), strict=True))), path)
    return np.array(CLASSES)[y]


def main():
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        truth = scores(folder / "scores.parquet", 800, rng)
        answers = [{str(label), *rng.choice(CLASSES, int(rng.random() < 0.3)).tolist()} for label in truth]
        (folder / "answers.csv").write_text("\n".join(["candidates", *("|".join(sorted(a)) for a in answers)]))

        p = read_table(folder / "scores.parquet")
        candidates = read_table(folder / "answers.csv", candidates="candidates", classes=p.feature_names).candidates
        calibration = setwise.conformalize(p.X, candidates, random_state=0)
        calibration.save(folder / "model.cal")

        truth = scores(folder / "new.parquet", 1000, rng)
        new = read_table(folder / "new.parquet", features=calibration.classes.tolist())
        sets = setwise.Calibration.load(folder / "model.cal").predict_set(new.X, 0.9)
        write_sets(folder / "sets.csv", sets, carry={"truth": truth})
        print((folder / "sets.csv").read_text()[:120])
    result = setwise.evaluate(sets, truth)
    print(f"coverage {result['coverage']:.3f}, {result['mean_size']:.2f} labels a set")
    return {"coverage": result["coverage"], "mean_size": result["mean_size"], "n": result["n"]}


if __name__ == "__main__":
    main()
