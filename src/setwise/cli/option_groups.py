"""Groups of options that several commands share: a command takes one parameter for each group.

A group is a dataclass whose fields are options; on the command line they stand in the place of the parameter.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter
from typing import Any, get_type_hints


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """The command with a parameter for each option of its groups.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Size:
    ...     width: int = 2
    ...     height: int = 3
    >>> def draw(colour: str, *, size: Size) -> None:
    ...     print(colour, size.width * size.height)
    >>> list(inspect.signature(spread(draw)).parameters)
    ['colour', 'width', 'height']
    >>> spread(draw)(colour="red", height=4)
    red 8
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters: list[Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name not in groups:
            parameters.append(parameter.replace(annotation=hints[name], kind=Parameter.KEYWORD_ONLY))
            continue
        kinds = get_type_hints(groups[name], include_extras=True)
        parameters += [
            Parameter(one.name, Parameter.KEYWORD_ONLY, default=one.default, annotation=kinds[one.name])
            for one in fields(groups[name])
        ]

    @wraps(command)
    def call(**options: Any) -> None:
        for name, group in groups.items():
            given = {one.name: options.pop(one.name) for one in fields(group) if one.name in options}
            options[name] = group(**given)
        command(**options)

    call.__dict__["__signature__"] = inspect.Signature(parameters)
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call
