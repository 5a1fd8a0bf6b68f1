"""`setwise demo`: handwritten digits that eight people looked at, from their votes to sets with a guarantee."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from setwise import learn, tables
from setwise.cli import options as opt
from setwise.cli.screen import Clock
from setwise.labels.votes import Votes
from setwise.learn.threads import use_one_thread
from setwise.report import report_model
from setwise.storage.atomic_files import replacing

EXAMPLES = ("setwise demo --out demo/",)
_TITLE = "Digits that nobody labelled with certainty: can these sets be trusted?"
_PEOPLE = {"ada": 0.97, "ben": 0.95, "cleo": 0.92, "dev": 0.9, "eli": 0.88, "fay": 0.85, "gus": 0.8, "hal": 0.2}
_LOOKALIKES = (6, 7, 3, 8, 9, 6, 5, 1, 3, 4)  # what each digit is taken for most often
_ANSWERS = 3  # to each image
_VERIFIED = 50


def demo(
    *,
    out: Annotated[Path, opt.option("--out FOLDER", "Folder to write; it replaces an earlier demo there.")] = Path(
        "demo"
    ),
    level: Annotated[float, opt.CONFIDENCE] = 0.9,
    seed: Annotated[int, opt.SEED] = 0,
    display: opt.ScreenOptions,
) -> None:
    """Tries setwise on handwritten digits: votes, verified rows, prediction sets and a report."""
    from sklearn.frozen import FrozenEstimator  # loaded when the demo runs

    from setwise.crowd.annotators import annotators
    from setwise.estimators.split import ConformalClassifier

    screen, clock = display.screen(), Clock()
    out.mkdir(parents=True, exist_ok=True)
    use_one_thread()
    X, votes, y = _digits(seed)
    train, held, new = np.split(np.random.default_rng(seed).permutation(len(y)), [700, 1300])
    told, people = np.concatenate([train, held]), annotators(votes[train])
    screen.say(
        f"{len(told):,} blurred images of digits. {_ANSWERS} of {len(_PEOPLE)} people said what each shows. They "
        f"disagree on about {(votes[told].candidates().sizes > 1).mean():.0%} of the images."
    )
    odd = [str(name) for name, flags in zip(people.names, people.flags, strict=True) if flags]
    screen.say(f"Their answers show whom to look at first: {' and '.join(odd)}.", "")
    learner = learn.PartialLabelClassifier("mlp", scale="standard", hidden_sizes=(300,), epochs=40)
    learner.set_params(random_state=seed, verbose=int(screen.shows_progress))
    learned = learner.fit(X[train], votes[train])
    accuracy = float((learned.predict(X[new]) == y[new]).mean())
    screen.say(
        f"learned from {len(train)}, no true digit among them: {accuracy:.1%} of {len(new)} new ones right, {clock}"
    )
    verified_rows = [int(digit) if row < _VERIFIED else None for row, digit in enumerate(y[held])]
    rows, results = [], []
    for used, (answers, strategy, assume, verified) in {
        "the set of all answers": (votes[held].candidates(), "max", "nothing", None),
        "votes: how many gave each": (votes[held], "votes", "nothing", None),
        "votes, and how often each person errs": (votes[held], "crowd", "independent", None),
        f"votes, and {_VERIFIED} verified images": (votes[held], "auto", "nothing", verified_rows),
    }.items():
        made = ConformalClassifier(FrozenEstimator(learned), strategy, assume=assume, random_state=seed)
        model = made.set_params(confidence_level=level).fit(X[held], answers, verified=verified)
        result, guarantee = model.evaluate(X[new], y[new]), model.guarantee(level)
        rows.append([used, f"{result['mean_size']:.2f}", f"{result['coverage']:.3f}", _brief(guarantee)])
        kept = {name: result[name] for name in ("coverage", "coverage_interval", "mean_size")}
        results.append({"uses": used, "strategy": guarantee.strategy, **kept, "promised": guarantee.promised})
    screen.say(f"conformalized on {len(held)} more at confidence {level:.12g}, and tried on the new ones:", "")
    screen.table(["what is used", "labels per set", "coverage", "guaranteed"], rows, wide=3)
    screen.show("\nVotes alone guarantee that a set contains an answer. Verified rows guarantee the true label:\n")
    screen.show(model.guarantee(level))
    model.save(out / "model")
    pixels = {"pixels": list(X[new]), "digit": y[new]}
    tables.write_sets(out / "new.parquet", votes[new].candidates(), carry=pixels, column="answers")
    tables.write_sets(out / "sets.csv", model.predict_set(X[new], level), carry={"digit": y[new]})
    names = {"truth": "digit", "candidates": "answers", "features": "pixels"}
    run = {"model": "model", "data": "new.parquet", "image": [8, 8], "title": _TITLE, **names}
    with replacing(out / "run.json") as beside:
        beside.write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")
    images = X[new].reshape(-1, 8, 8)
    report_model(out / "report.html", model, X[new], y[new], votes[new], images=images, title=_TITLE)
    screen.say("", f"Open {out / 'report.html'}: who answers well, and which digits are missed.")
    screen.say("Your own votes take three commands. On these:", "")
    tables.write_votes(out / "answers.csv", votes[told])
    _write_images(out / "images.csv", X[told], votes[told])
    _write_images(out / "new.csv", X[new], votes[new])
    for command in demo_commands(out):
        screen.say(f"  {command}")
    screen.emit({"accuracy": accuracy, "strategies": results, "seconds": clock.seconds, "out": str(out)})


def _digits(seed: int) -> tuple[Any, Votes, Any]:
    """Images, what people say about them, and the true digits."""
    from sklearn.datasets import load_digits  # loaded when the demo runs

    rng = np.random.default_rng(seed)
    X, y = load_digits(return_X_y=True)
    X = np.round(X + rng.normal(scale=4, size=X.shape), 1)  # blurred, so that there is something to be unsure about
    names, skill = np.array(list(_PEOPLE)), np.array(list(_PEOPLE.values()))
    who = rng.random((len(y), len(names))).argsort(axis=1)[:, :_ANSWERS]
    wrong = np.where(rng.random(who.shape) < 0.5, np.array(_LOOKALIKES)[y, None], rng.integers(0, 10, who.shape))
    said = np.where(rng.random(who.shape) < skill[who], y[:, None], wrong)
    items = np.repeat([f"image-{i:04d}" for i in range(len(y))], _ANSWERS)
    columns = {"item": items, "annotator": names[who].ravel(), "label": said.ravel()}
    return X, Votes.from_table(columns, classes=range(10)), y


def _brief(guarantee: Any) -> str:
    """What is guaranteed, in a few words."""
    if guarantee.promised is not None:
        condition = ", if it is among the answers" if guarantee.strategy == "max" else ""
        return f"the true label with {guarantee.promised:.2f}{condition}"
    claim = next((claim for claim in guarantee.claims if not claim.refuted), None)
    if claim is None:
        return "none: the answers refute it"
    what = "an answer" if claim.event == "answer" else "the true label, if they err independently,"
    return f"{what} with {claim.probability:.2f}"


def _write_images(path: Path, X: Any, votes: Votes) -> None:
    """The images as a table with a column for each pixel."""
    import pyarrow as pa  # loaded for files
    import pyarrow.csv

    pixels = {f"p{j:02d}": X[:, j] for j in range(X.shape[1])}
    with replacing(path) as beside:
        pa.csv.write_csv(pa.table({"item": pa.array(votes.items), **pixels}), beside)


def demo_commands(out: Path) -> list[str]:
    """What does the same from files, as one would type it."""
    answers, model = out / "answers.csv", out / "own"
    return [
        f"setwise annotators {answers} --item item --annotator annotator --label label",
        f"setwise fit {out / 'images.csv'} --votes {answers} --key item --assume independent --out {model}",
        f"setwise predict {model} {out / 'new.csv'} --out {out / 'own.csv'}",
    ]
