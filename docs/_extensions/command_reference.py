"""A directive that writes out every command of `setwise`; see `command_pages`."""

from __future__ import annotations

from typing import Any

from command_pages import commands, lines
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from typer.main import get_command

from setwise.cli.app import app as command_line


class CommandReference(SphinxDirective):
    """``{command-reference}`` in Markdown, without arguments."""

    def run(self) -> list[nodes.Node]:
        """A section for each command."""
        sections: list[nodes.Node] = []
        for path, command in commands("setwise", get_command(command_line)):
            section = nodes.section(ids=[nodes.make_id(path)])
            section += nodes.title(text=path)
            self.state.nested_parse(StringList(list(lines(path, command)), "commands"), 0, section)
            sections.append(section)
        return sections


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the directive."""
    app.add_directive("command-reference", CommandReference)
    return {"parallel_read_safe": True}
