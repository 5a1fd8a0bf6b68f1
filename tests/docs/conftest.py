import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
GENERATED = {"_build", "auto_examples", "generated"}
FENCE = re.compile(r"^(`{3,})([^\n`]*)\n(.*?)^\1\s*$", re.DOTALL | re.MULTILINE)
"""A block of code or output: fence, language, body."""


def pages():
    """README and every page that somebody wrote or a command made and committed."""
    found = [page for page in sorted(DOCS.rglob("*.md")) if not GENERATED & set(page.relative_to(DOCS).parts)]
    return [ROOT / "README.md", *found]
