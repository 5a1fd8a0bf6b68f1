"""What to do next: which labels to accept, which rows to review or have verified."""
