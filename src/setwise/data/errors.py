"""A file or table that cannot be read as asked."""

from __future__ import annotations

from setwise.errors import InputError


class DataError(InputError):
    """Something is wrong with a file or a table: what and where, and the ways out of it."""
