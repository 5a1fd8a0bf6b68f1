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
    screen.say("\n\n".join(map(str, _by_category(model, confidence_level).values())))


def claims(model: Any, confidence_level: float) -> dict[str, Any]:
    """The same as plain data; calibrated by category there is one guarantee per category."""
    parts = getattr(model, "folds_", None) or [getattr(model, "calibration_", model)]
    made = _by_category(model, confidence_level)
    return {
        "calibrated_on": sum(part.evidence.n for part in parts),
        "strategy": {"asked": parts[0].strategy.name, "used": next(iter(made.values())).strategy},
        "guarantee": _unwrapped({category: claim.to_dict() for category, claim in made.items()}),
    }


def promised(model: Any, confidence_level: float) -> Any:
    """The probability that is promised, or one per category; None where there is none."""
    made = _by_category(model, confidence_level)
    return _unwrapped({category: claim.promised for category, claim in made.items()})


def _by_category(model: Any, confidence_level: float) -> dict[Any, Any]:
    """One guarantee per category; without categories a single one, under None."""
    made = model.guarantee(confidence_level)
    found = made if isinstance(made, dict) else getattr(made, "by_category", None)
    return found or {None: made}


def _unwrapped(found: dict[Any, Any]) -> Any:
    return found[None] if set(found) == {None} else found
