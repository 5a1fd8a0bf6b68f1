"""One file per question: its task, what is measured, and over which data and settings."""
