"""A model that lives elsewhere (ONNX, a web service, R): its probabilities arrive as a file, one column per class.

Where ONNX Runtime and skl2onnx are installed the file is written by an ONNX model; where they are not, by the
scikit-learn model that would have been exported, and a line of output states it.

On the command line everything after the file is

    setwise conformalize --probabilities scores.parquet --labels answers.csv --out model.cal
    setwise predict model.cal --probabilities new.parquet --out sets.csv
"""

import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.linear_model import LogisticRegression

import setwise
from setwise.tables import read_table, write_sets

CLASSES = ["wren", "owl", "ant"]  # the order of the model's outputs


def rows(n, rng):
    y = rng.integers(0, 3, n)
    return 2 * np.eye(3)[y] + rng.normal(size=(n, 3)), y


def outside_model(rng):
    """What gives probabilities for features: an ONNX session, or the model it would have been made from."""
    X, y = rows(1000, rng)
    model = LogisticRegression().fit(X.astype(np.float32), y)
    if not (find_spec("onnxruntime") and find_spec("skl2onnx")):
        print("onnxruntime and skl2onnx are not both installed: a scikit-learn model stands in for the ONNX model")
        return model.predict_proba
    from onnxruntime import InferenceSession
    from skl2onnx import to_onnx

    exported = to_onnx(model, X[:1].astype(np.float32), options={"zipmap": False}).SerializeToString()
    session = InferenceSession(exported, providers=["CPUExecutionProvider"])
    print("probabilities of an ONNX model")
    return lambda features: session.run(["probabilities"], {"X": features.astype(np.float32)})[0]


def write_scores(path, probabilities):
    """The file as the model outside writes it."""
    pq.write_table(pa.table(dict(zip(CLASSES, probabilities.T.astype(np.float32), strict=True))), path)


def main():
    rng = np.random.default_rng(0)
    give = outside_model(rng)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        X, y = rows(800, rng)
        write_scores(folder / "scores.parquet", give(X))
        answers = [{CLASSES[k], *rng.choice(CLASSES, int(rng.random() < 0.3)).tolist()} for k in y]
        (folder / "answers.csv").write_text("\n".join(["candidates", *("|".join(sorted(a)) for a in answers)]))

        p = read_table(folder / "scores.parquet")
        candidates = read_table(folder / "answers.csv", candidates="candidates", classes=p.feature_names).candidates
        calibration = setwise.conformalize(p.X, candidates, random_state=0)
        calibration.save(folder / "model.cal")

        X, y = rows(1000, rng)
        write_scores(folder / "new.parquet", give(X))
        truth = np.array(CLASSES)[y]
        new = read_table(folder / "new.parquet", features=calibration.classes.tolist())
        sets = setwise.Calibration.load(folder / "model.cal").predict_set(new.X, 0.9)
        write_sets(folder / "sets.csv", sets, carry={"truth": truth})
        print((folder / "sets.csv").read_text()[:120])
    result = setwise.evaluate(sets, truth)
    print(f"coverage {result['coverage']:.3f}, {result['mean_size']:.2f} labels a set")
    return {"coverage": result["coverage"], "mean_size": result["mean_size"], "n": result["n"]}


if __name__ == "__main__":
    main()
