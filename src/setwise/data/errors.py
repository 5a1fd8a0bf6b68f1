"""The one error of this room: a file or table that cannot be read as asked."""

from __future__ import annotations


class DataError(ValueError):
    """Something is wrong with a file or a table; the message names it, the place, and the remedy."""
