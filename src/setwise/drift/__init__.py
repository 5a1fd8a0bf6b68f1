"""Whether new rows are like the calibration rows: all at once, or row by row."""
