"""The picture and the figures of docs/trust.md that come from the results of `make observatory`."""

from __future__ import annotations

from html import escape

from summary import about

TITLES = {
    "n": "calibration rows",
    "k": "classes",
    "contamination": "how false labels arise",
    "score": "score",
    "shape": "used as",
    "checks": "rows verified",
    "model": "the model",
    "breach": "what is false there",
    "assume": "stated",
}
SIDE, LEFT, TOP = 15, 150, 150
SCALE = ("#08519c", "#3182bd", "#6baed6", "#9ecae1", "#c6dbef")  # from a margin of 0 on to 0.1 and more
EMPTY, SILENT, BROKEN = "#ffffff", "#e8e8e8", "#d7301f"


def colour(square):
    if square is None:
        return EMPTY
    if square["counts"].get("violated"):
        return BROKEN
    if square["margin"] is None:
        return SILENT
    return SCALE[min(int(max(square["margin"], 0) / 0.02), len(SCALE) - 1)]


def tooltip(square):
    counts = ", ".join(f"{number} {status}" for status, number in sorted(square["counts"].items()))
    margin = "" if square["margin"] is None else f"; median margin {square['margin']:+.3f}"
    return f"{square['strategy']}, {TITLES[square['dimension']]} {square['value'] or 'nothing'}: {counts}{margin}"


def order(values):
    return sorted(
        values, key=lambda value: (0, float(value), "") if value.replace(".", "").isdigit() else (1, 0, value)
    )


def picture(squares):
    """One square for each strategy and each value of each dimension, as SVG."""
    at = {(s["strategy"], s["dimension"], s["value"]): s for s in squares}
    strategies = list(dict.fromkeys(s["strategy"] for s in sorted(squares, key=lambda s: s["strategy"])))
    marks, x = [], LEFT
    for name, title in TITLES.items():
        values = order({s["value"] for s in squares if s["dimension"] == name})
        marks.append(f'<text x="{x}" y="12" font-weight="bold">{escape(title)}</text>')
        for value in values:
            shown = escape(value or "nothing")
            marks.append(f'<text transform="translate({x + 11},{TOP - 6}) rotate(-60)">{shown}</text>')
            for row, strategy in enumerate(strategies):
                square = at.get((strategy, name, value))
                words = "" if square is None else f"<title>{escape(tooltip(square))}</title>"
                place = f'x="{x}" y="{TOP + row * SIDE}" width="{SIDE - 1}" height="{SIDE - 1}"'
                marks.append(f'<rect {place} fill="{colour(square)}">{words}</rect>')
            x += SIDE
        x += max(SIDE, 7 * len(title) - SIDE * len(values))
    marks += [
        f'<text x="{LEFT - 6}" y="{TOP + row * SIDE + 11}" text-anchor="end">{escape(strategy)}</text>'
        for row, strategy in enumerate(strategies)
    ]
    height = TOP + SIDE * len(strategies) + 30
    legend = [*zip(("0", "0.02", "0.04", "0.06", "0.08 and more"), SCALE, strict=True)]
    legend += [("nothing is guaranteed", SILENT), ("broken", BROKEN)]
    place = LEFT
    for text, fill in legend:
        marks.append(f'<rect x="{place}" y="{height - 18}" width="{SIDE - 1}" height="{SIDE - 1}" fill="{fill}"/>')
        marks.append(f'<text x="{place + 18}" y="{height - 7}">{text}</text>')
        place += 40 + 7 * len(text)
    style = "font-family='sans-serif' font-size='10' fill='#222'"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {x} {height}" width="{x}" height="{height}" role="img" '
        f'aria-label="Margin between coverage and guarantee, by strategy and setting">'
        f'<rect width="100%" height="100%" fill="#fff"/><g {style}>{"".join(marks)}</g></svg>\n'
    )


def figures(result):
    """The text and the table about the results."""
    counts = result["counts"]
    rows = [
        ("kept", "every statement that could be tested holds"),
        ("violated", "a statement is false"),
        ("named", "every guarantee rests on a premise that is false there, and names it"),
        ("refused", "the call is refused with an error that gives the reason"),
        ("none", "nothing is guaranteed"),
    ]
    return [
        f"{result['cells']:,} cells, {result['statements']:,} statements, {result['samples']:,} draws of calibration rows; "
        f"{'; '.join(about({'machine': one}) for one in result['machines'])}; {result['core_seconds']:,} core-seconds.",
        "",
        "| cells | in which |",
        "|---|---|",
        *(f"| {counts.get(status, 0):,} | {meaning} |" for status, meaning in rows),
        "",
        "![Margin between coverage and guarantee, by strategy and setting](observatory.svg)",
        "",
        "Each square holds the cells of one strategy with one setting. The colour is the median over these cells of how "
        "far coverage lies above the guarantee that comes closest: dark is tight. A square is red where "
        f"the exact p-value of a statement is below {result['p_value_of_a_violation']:.0e} in one of its cells.",
    ]
