"""What may be declared about false labels, and whether the data refute it."""
