"""Split conformal prediction written by hand: what libraries for one label per row are to be measured against."""

from __future__ import annotations

from ambiguous.split import both, lac

both("by hand", lac, None)
