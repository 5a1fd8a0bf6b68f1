"""Writes the last section of docs/guide/scale.md, what it costs, from the kept results of streams.py and growth.py."""

from __future__ import annotations

import math

from summary import ROOT, about, load

from setwise.ranks import beta_interval, rank

PAGE, MARK = ROOT / "docs" / "guide" / "scale.md", "## What it costs"
ROWS, CLASSES, TOP, SECONDS = 10**9, 1_000, 20, 3_600
LIMIT, BESIDE = 2**30, 64  # bytes that calibration rows may take, and those of a row beside its probabilities
LEVEL = 0.9


def size(count):
    """Bytes in words."""
    unit, name = next(
        (u, n) for u, n in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")) if count >= u
    )
    return f"{count / unit:,.3g} {name}"


def measured(streams, growth):
    """Rows per second and core, and memory."""
    small, large = (streams["predict"]["rows"][key] for key in ("1000000", "10000000"))
    wide, ray = growth["wide"], streams["ray"]
    per_million = max(large["peak_mb"] - small["peak_mb"], 0) / 9
    classes = streams["predict"]["classes"]
    return [
        "| work | measured |",
        "|---|---|",
        f"| `predict`, 10⁷ rows × {classes} classes | {1e7 / large['predict']['cpu'] / 1e6:.2f} million rows/s per core, "
        f"{large['ratio']['wall']:.2f} times the wall clock of pyarrow alone |",
        f"| `predict`, {wide['rows']:,} rows × {wide['classes']:,} classes | {wide['rows'] / wide['cpu']:,.0f} rows/s per core, "
        f"{size(wide['rows'] / wide['cpu'] * wide['classes'] * 4)}/s of probabilities |",
        f"| memory of `predict` | {small['peak_mb']:.0f} MB at 10⁶ rows, {large['peak_mb']:.0f} MB at 10⁷: {per_million:.1f} MB per "
        f"million rows; {wide['peak_mb']:.0f} MB with {wide['classes']:,} classes |",
        f"| memory of `conformalize` | {classes * 4 + BESIDE} MB per million rows of {classes} classes, {CLASSES * 4 + BESIDE:,} MB of "
        f"{CLASSES:,}, up to `--memory-limit` (float32, and {BESIDE} bytes a row) |",
        f"| `--engine ray`, {ray['rows']:,} rows × {ray['classes']} classes, {ray['cores']} cores | {ray['ratio']:.2f} times the local "
        f"engine; {ray['start']:.1f} s to start a Ray of its own |",
        "",
    ]


def arithmetic(growth):
    """What a billion rows of a thousand classes need."""
    wide, runs = growth["wide"], growth["workers"]["runs"]
    rate = wide["rows"] / wide["cpu"]
    per_row = CLASSES * 4
    hours = ROWS / rate / SECONDS
    one, two = (next(run["wall"] for run in runs if run["workers"] == count) for count in (1, 2))
    share = min(one / two / 2, 1.0)
    kept = LIMIT // (per_row + BESIDE)
    low, high = beta_interval(kept, rank(kept, LEVEL), 0.05)
    return [
        f"### {ROWS:,} rows of {CLASSES:,} classes",
        "",
        "| what | arithmetic | |",
        "|---|---|---|",
        f"| probabilities, float32 | 10⁹ × {CLASSES:,} × 4 B | {size(ROWS * per_row)} |",
        f"| the same, float16 | 10⁹ × {CLASSES:,} × 2 B | {size(ROWS * per_row / 2)} |",
        f"| the same, top {TOP} as pairs | 10⁹ × {TOP} × (4 B + 4 B) | {size(ROWS * TOP * 8)} |",
        f"| bytes per second and core | {rate:,.0f} rows/s × {per_row:,} B | {size(rate * per_row)}/s |",
        f"| core-hours of `predict` | 10⁹ / {rate:,.0f} / {SECONDS:,} | {hours:,.1f} |",
        f"| workers for one hour | {hours:,.1f} / {share:.2f}, the parallel efficiency of two workers | "
        f"{math.ceil(hours / share):,} |",
        f"| bytes per second of the storage, for one hour | {size(ROWS * per_row)} / {SECONDS:,} s | {size(ROWS * per_row / SECONDS)}/s |",
        f"| memory of a worker | measured | {wide['peak_mb']:.0f} MB |",
        f"| calibration rows in 1 GiB | 2³⁰ / ({per_row:,} B + {BESIDE} B) | {kept:,}: coverage at {LEVEL} between {low:.4f} and "
        f"{high:.4f} in 95 of 100 samples |",
        f"| memory of `triage`, in one process | 10⁹ × 12 to 20 B | {size(12 * ROWS)} to {size(20 * ROWS)} |",
        "",
        "Rates are of tables that lie in the memory of the machine's file system: storage that gives fewer bytes per second sets",
        "the pace instead. More calibration rows than fit are sampled, which costs reading them.",
        "",
    ]


def grown(rows, name):
    """How many times as long it takes."""
    least, most = rows[0], rows[-1]
    longer = " and ".join(f"`{work}` {most[work] / least[work]:.1f} times" for work in ("max", "corrected"))
    return f"With {most[name] / least[name]:g} times as many {name} {longer} as long"


def section():
    """The lines of the section."""
    streams, growth = load("streams"), load("growth")
    cores = int(growth["machine"]["device"].split(", ")[1].split()[0])
    busy = growth["load"] > cores / 2
    note = (
        f" The machine was busy (load {growth['load']} on {cores} cores): its seconds are too many." if busy else ""
    )
    return [
        MARK,
        "",
        "Written by `python benchmarks/scale_page.py` from the results of these commands; do not edit from here on.",
        "",
        "`python benchmarks/streams.py --part predict` compares `setwise predict` with pyarrow, which reads the same input and",
        "writes the same output and does nothing else; `--part sampling` streams 500 draws of 10⁷ scores through a sample of 1 MB",
        "and compares the coverage with the guarantee; `--part ray` compares `--engine ray` with the local engine on the cores of one",
        f"machine, where all that a cluster brings is what it costs ({about(streams)}).",
        f"`OMP_NUM_THREADS=1 python benchmarks/growth.py` measures many classes, and how cost grows ({about(growth)}).{note}",
        "",
        *measured(streams, growth),
        *arithmetic(growth),
        "### How cost grows",
        "",
        "![Seconds against rows, classes and votes per row, and rows per second against workers](../growth.svg)",
        "",
        "Calibration and prediction in one process, one thread, float32; `corrected` looks at the scores of all labels. "
        f"{grown(growth['rows'], 'rows')}; {grown(growth['classes'], 'classes').replace('With', 'with', 1)}. The annotator model is fitted by passes over rows "
        "× classes and over answers, more of them where answers are few. Workers are the cores of one Ray on one machine.",
    ]


def main():
    by_hand = PAGE.read_text(encoding="utf-8").split(MARK)[0]
    PAGE.write_text(by_hand + "\n".join(section()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
