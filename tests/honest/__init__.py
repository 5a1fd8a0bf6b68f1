"""Honest but unusual data: each design must get its guarantee, and its coverage."""
