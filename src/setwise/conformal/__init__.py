"""`conformalize`, and the calibrations that it returns: they answer, compare, watch and decide."""
