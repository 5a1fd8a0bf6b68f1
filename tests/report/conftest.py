"""Reports as people make them, and a browser to look at them."""

import os
import shutil

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import setwise
from setwise.datasets import Random, contaminate
from setwise.report import build_report

PATIENCE = 240_000  # milliseconds: the machine may be busy
HOSTILE = "<script>alert(1)</script>"
HOSTILE_CLASSES = [
    HOSTILE,
    "</script><script>alert(2)</script>",
    '"><img src=x onerror=alert(3)>',
    "a & b",
    "{{ 7*7 }}",
]


@pytest.fixture(scope="session")
def digits():
    """Blurred digits with candidate sets: a model's probabilities, for calibration and for new rows."""
    rng = np.random.default_rng(0)
    X, y = load_digits(return_X_y=True)
    X = X + rng.normal(scale=4, size=X.shape)
    candidates = contaminate(y, Random(p=0.1), n_classes=10, random_state=0)
    learn, hold, new = np.split(rng.permutation(len(y)), [597, 1197])
    model = LogisticRegression(C=0.01, max_iter=2000).fit(X[learn], y[learn])
    P = model.predict_proba(X)
    checked = [int(digit) if row < 200 else None for row, digit in enumerate(y[hold])]

    chosen = setwise.conformalize(P[hold], candidates[hold], verified=checked, random_state=0)
    images = np.clip(X[new], 0, 16).reshape(-1, 8, 8)
    return {
        "calibration": chosen,
        "P": P[new],
        "y": y[new],
        "candidates": candidates[new],
        "images": images,
        "by": np.where(images.mean(axis=(1, 2)) > 6.5, "thick", "thin"),
    }


@pytest.fixture(scope="session")
def digits_report(digits, tmp_path_factory):
    return build_report(
        tmp_path_factory.mktemp("report") / "digits.html",
        digits["calibration"],
        digits["P"],
        y=digits["y"],
        candidates=digits["candidates"],
        images=digits["images"],
        by=digits["by"],
        title="Blurred digits with several candidate labels: can these sets be trusted?",
    )


def hostile_rows(n=120, seed=0):
    """Probabilities, truth and candidates over class names that try to leave their place."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(5, 0.4), size=n)
    codes = np.minimum((P.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), 4)
    mask = (np.arange(5) == codes[:, None]) | (rng.random((n, 5)) < 0.2)
    names = np.array(HOSTILE_CLASSES, dtype=object)
    return P, names[codes], setwise.LabelSets.from_mask(mask, classes=HOSTILE_CLASSES)


def hostile_votes(candidates, seed=0):
    """An answer of each annotator to each row, whose names try to leave their place as well."""
    rng = np.random.default_rng(seed)
    listed = candidates.to_lists()
    said = [[row[rng.integers(len(row))] for _ in HOSTILE_CLASSES] for row in listed]
    return setwise.Votes.from_matrix(said, classes=HOSTILE_CLASSES, annotators=HOSTILE_CLASSES)


@pytest.fixture(scope="session")
def hostile_report(tmp_path_factory):
    P, y, candidates = hostile_rows()
    calibration = setwise.conformalize(P[:60], candidates[:60])
    return build_report(
        tmp_path_factory.mktemp("hostile") / "report.html",
        calibration,
        P[60:],
        y=y[60:],
        candidates=candidates[60:],
        votes=hostile_votes(candidates),
        by=y[60:],
        title=HOSTILE,
        settings={HOSTILE: HOSTILE},
    )


@pytest.fixture(scope="session")
def browser():
    """Debian's chromium, headless and without a network of its own."""
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome")
    path = os.environ.get("SETWISE_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.skip(
            "NOT TESTED IN A BROWSER: there is no chromium here. Install it (apt-get install chromium), or name "
            "one in SETWISE_CHROMIUM."
        )
    with sync_playwright() as driver:
        arguments = ["--no-sandbox", "--disable-background-networking", "--disable-component-update"]
        running = driver.chromium.launch(executable_path=path, headless=True, args=arguments, timeout=PATIENCE)
        yield running
        running.close()


@pytest.fixture
def open_page(browser):
    """Opens a file; what it says on the console, what fails in it and what it asks the network for is kept."""
    opened = []

    def go(path, **options):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.problems = []
        page.on("console", lambda said: page.problems.append(f"{said.type}: {said.text}"))
        page.on("pageerror", lambda error: page.problems.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (page.problems.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda asked: page.problems.extend(_foreign(asked.url, path)))
        page.goto(path.as_uri())
        opened.append(context)
        return page

    yield go
    for context in opened:
        context.close()


def _foreign(url, path):
    return [] if url == path.as_uri() or url.startswith(("data:", "blob:")) else [f"request: {url}"]
