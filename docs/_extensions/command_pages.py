"""Every command of `setwise` with its arguments, options and examples, as Markdown.

It asks the command line itself, so that the page cannot say anything else than ``--help`` does.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any, Literal, get_args, get_origin


def commands(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    """Every command below this one with its full name; groups themselves say nothing of their own."""
    if not hasattr(command, "commands"):
        yield path, command
        return
    for name, inner in command.commands.items():
        yield from commands(f"{path} {name}", inner)


def lines(path: str, command: Any) -> Iterator[str]:
    """What there is to say of one command, line by line."""
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option"]
    yield from (command.help or "").strip().splitlines()
    yield from ("", "```text", " ".join([path, *map(_usage, arguments), "[OPTIONS]"]), "```", "")
    panels = {getattr(one, "rich_help_panel", None) or "Options": None for one in options}
    headings = {panel: [one for one in options if (one.rich_help_panel or "Options") == panel] for panel in panels}
    for heading, group in {"Arguments": arguments, **headings}.items():
        if group:
            yield from (f"| {heading} | what it means |", "|---|---|")
            yield from (f"| `{_written(one)}` | {_meaning(one)} |" for one in group)
            yield ""
    examples = [line.strip() for line in (command.epilog or "").splitlines() if line.strip().startswith("setwise")]
    if examples:
        yield from ("Examples:", "", "```text", *examples, "```", "")


def _usage(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    return name if argument.required else f"[{name}]"


def _written(one: Any) -> str:
    if one.param_type_name == "argument":
        return _usage(one).strip("[]")
    names = ", ".join([*one.opts, *one.secondary_opts])
    return names if one.is_flag else f"{names} {_kind(one)}"


def _kind(option: Any) -> str:
    """The words that may follow, where there is a list of them."""
    annotation = getattr(getattr(option, "type_descriptor", None), "annotation", None)
    words = [str(getattr(word, "value", word)) for word in _choices(annotation)]
    return "[" + ", ".join(words) + "]" if words else str(option.metavar or option.name.upper())


def _choices(annotation: Any) -> tuple[Any, ...]:
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    return tuple(annotation) if isinstance(annotation, type) and issubclass(annotation, Enum) else ()


def _meaning(one: Any) -> str:
    said = " ".join((getattr(one, "help", None) or "").split()).replace("|", "\\|")
    default = one.default
    if callable(default) or default is None or default is False or default in ((), [], "", True):
        shown = ""
    else:
        shown = f" Default: `{getattr(default, 'value', default)}`."
    return said + (" Required." if one.required and one.param_type_name == "option" else shown)
