"""What may be declared about false candidates, and whether the data refute it."""
