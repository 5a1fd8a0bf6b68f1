"""What to do next: which rows to have verified."""
