"""What is known of the calibration rows: facts given with them, and the scores of their candidates."""
