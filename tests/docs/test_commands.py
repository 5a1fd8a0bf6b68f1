"""The page of commands says what the command line says, and so do sentences that name a command."""

import re
import runpy

import pytest
from typer.main import get_command

from setwise.cli.app import app

from .conftest import DOCS, FENCE, pages

COMMANDS = runpy.run_path(str(DOCS / "_extensions" / "command_pages.py"))


def test_every_command_and_every_option_is_on_the_page():
    found = dict(COMMANDS["commands"]("setwise", get_command(app)))
    assert {"setwise fit", "setwise report", "setwise datasets fetch"} <= set(found)
    for path, command in found.items():
        text = "\n".join(COMMANDS["lines"](path, command))
        for option in command.params:
            if option.name != "help":
                assert option.opts[0].upper() in text.upper(), (path, option.name)
        assert "Examples:" in text, path


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_commands_named_in_a_sentence_exist_with_their_options(page):
    listed = dict(COMMANDS["commands"]("setwise", get_command(app)))
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for span in re.findall(r"`(setwise [a-z][^`]*)`", text):
        named = [path for path in listed if f"{span} ".startswith(f"{path} ")]
        assert named, f"{page.name}: {span}"
        known = {option for one in listed[named[0]].params for option in (*one.opts, *one.secondary_opts)}
        assert set(re.findall(r"(?<=\s)--[a-z-]+", span)) <= known | {"--help"}, f"{page.name}: {span}"
