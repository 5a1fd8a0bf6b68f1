"""From probabilities and candidate sets to thresholds, prediction sets and guarantees."""
