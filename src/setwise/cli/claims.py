"""What may be claimed about the sets of a model or a calibration, for people and for scripts."""

from __future__ import annotations

from typing import Any

from setwise.cli.screen import Screen


def show_claims(screen: Screen, model: Any, confidence_level: float) -> None:
    """How it was conformalized, and the guarantee, one paragraph per category."""
    found = claims(model, confidence_level)
    asked, used = found["strategy"]["asked"], found["strategy"]["used"]
    shown = asked if asked == used else f"{asked} → {used}"
    screen.say(f"conformalized on {found['calibrated_on']:,} rows with strategy {shown}\n")
    screen.say(found["guarantee"]["text"])


def claims(model: Any, confidence_level: float) -> dict[str, Any]:
    """The same as plain data."""
    parts, made = getattr(model, "calibration_", model).parts, model.guarantee(confidence_level)
    return {
        "calibrated_on": sum(part.evidence.n for part in parts),
        "strategy": {"asked": parts[0].strategy.name, "used": made.strategy},
        "guarantee": made.to_dict(),
    }
