"""Options that several commands share, each worded once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def _columns(ctx: typer.Context, incomplete: str) -> list[str]:
    """For the shell's completion: the columns of the first table that the command line names."""
    from setwise.data.arrow_tables import column_names  # noqa: PLC0415 - Arrow is loaded when a file is read

    for given in (*ctx.args, *ctx.params.values()):  # an unfinished line is not yet told apart
        try:
            return [name for name in column_names(Path(str(given))) if name.startswith(incomplete)]
        except (OSError, ValueError):
            continue
    return []


def _words(text: str) -> Any:
    """For the shell's completion: these words."""

    def offered(incomplete: str) -> list[str]:
        return [word for word in text.split() if word.startswith(incomplete)]

    return offered


File = Annotated[
    Path,
    typer.Argument(help="A table: .csv, .tsv, .jsonl, .parquet, .feather, .arrow, .npz or .mat.", metavar="FILE"),
]
Candidates = Annotated[
    str,
    typer.Option(
        "--candidates",
        help="The column of possible labels: text ('cat|dog'), lists, or the start of multi-hot columns' names.",
        autocompletion=_columns,
    ),
]
OutFile = Annotated[Path, typer.Option("--out", help="The file to write; its suffix says the format.")]
Separator = Annotated[str, typer.Option("--separator", help="What stands between labels in text.")]
Delimiter = Annotated[
    str | None, typer.Option("--delimiter", help="What stands between columns in text. Default: , (tab in .tsv).")
]
Confidence = Annotated[float, typer.Option("--confidence", help="How often sets shall contain the truth.")]
STRATEGIES = "auto max all mean min corrected rectified posterior classwise mixture:0.5 mixture:verified"
Strategy = Annotated[
    str,
    typer.Option(
        "--strategy",
        help="auto, max, all, mean, min, corrected, rectified, posterior, classwise, mixture:0.5 or "
        "mixture:verified.",
        autocompletion=_words(STRATEGIES),
    ),
]
Score = Annotated[
    str,
    typer.Option(
        "--conformity-score",
        help="lac, aps, raps, saps or margin.",
        autocompletion=_words("lac aps raps saps margin"),
    ),
]
MissRate = Annotated[
    float, typer.Option("--miss-rate", help="How often the true label may be absent from the candidates.")
]
Assume = Annotated[
    str,
    typer.Option(
        "--assume",
        help="What you declare about how wrong labels become candidates: nothing; uniform (each equally often); "
        "class (it depends on the true class alone); or a FILE that says how often (.csv, .npy).",
        autocompletion=_words("nothing uniform class"),
    ),
]
By = Annotated[
    str | None,
    typer.Option(
        "--by",
        help="A column of categories: each is calibrated, and promised, for itself. Without such a column "
        "'predicted' is the most probable label.",
        autocompletion=_columns,
    ),
]
Cross = Annotated[
    int | None,
    typer.Option(
        "--cross",
        help="Cross-conformal over so many folds: every row learns and calibrates; promises 1 − 2ε.",
        min=2,
    ),
]
Missing = Annotated[
    str, typer.Option("--missing", help="Rows without candidates: error, or full (every label is one).")
]
Seed = Annotated[int, typer.Option("--seed", help="Same seed, same answer.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda, or what torch understands.")]
Features = Annotated[
    list[str] | None,
    typer.Option("--features", help="A feature column; repeat it. Default: all others.", autocompletion=_columns),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore", help="A column that is no feature (an id, the truth); repeat it.", autocompletion=_columns
    ),
]
Verified = Annotated[
    str | None,
    typer.Option(
        "--verified", help="The column with the true label of rows somebody checked.", autocompletion=_columns
    ),
]
Groups = Annotated[
    str | None,
    typer.Option("--groups", help="The column that says which rows belong together.", autocompletion=_columns),
]
CalibrationSize = Annotated[
    float, typer.Option("--calibration-size", help="The share of rows kept for calibration.")
]
Learner = Annotated[
    str,
    typer.Option(
        "--learner",
        help="auto; covering (learns to cover candidates); network; or em (logistic regression, without torch).",
    ),
]
Network = Annotated[str, typer.Option("--network", help="auto, linear, mlp or cnn.")]
Loss = Annotated[str, typer.Option("--loss", help="proden, rc, cc, naive, osl, merit, gce, lws or cavl.")]
Epochs = Annotated[int | None, typer.Option("--epochs", help="Passes over the rows; 100 if not given.")]
Preset = Annotated[str | None, typer.Option("--preset", help="Named settings, such as recommended.")]
Imputed = Annotated[str | None, typer.Option("--impute", help="Fill missing features: median, mean, or a number.")]
UnnamedFeatures = Annotated[
    list[str] | None,
    typer.Option("--features", help="A feature column, where the model knows no names; repeat it in order."),
]
Trusted = Annotated[
    list[str] | None, typer.Option("--trusted", help="A type that the saved model may hold; repeat it.")
]
OneHot = Annotated[bool, typer.Option("--one-hot", help="Turn text features into indicators.")]
ReportTo = Annotated[Path | None, typer.Option("--report", help="Write an HTML report there, too.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing unless something is wrong.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout instead of text.")]


def strategy_of(text: str, confidence: float) -> Any:
    """A strategy as it is written on the command line: a name, or a mixture with its weight."""
    name, colon, mu = text.partition(":")
    if not colon:
        return text
    from setwise.strategies import Mixture  # noqa: PLC0415 - needed here alone

    if name != "mixture":
        raise ValueError(f"--strategy: {text!r} is not known; only mixture takes a weight, as in mixture:0.5.")
    if mu == "verified":
        return Mixture(mu="verified", tune_for=confidence)
    try:
        return Mixture(mu=float(mu))
    except ValueError:
        raise ValueError(f"--strategy: the weight of {text!r} is neither a number nor verified.") from None
