"""The README as the package index shows it: there files of the repository cannot be reached by their path."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURE = re.compile(r"!\[[^\]]*\]\((?!https?:)[^)]*\)[ \n]?")
LINK = re.compile(r"\[([^\]]+)\]\((?!https?:|#)[^)]*\)")


def index_readme(text: str) -> str:
    """Leaves out pictures that are files, and keeps the words of links to files."""
    return LINK.sub(r"\1", PICTURE.sub("", text))


class CustomMetadataHook(MetadataHookInterface):
    """What the build asks for fields that are `dynamic`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Adds the README."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": index_readme(text)}
