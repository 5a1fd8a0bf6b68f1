"""One file per rival; each imports its library inside the functions, so that absent ones are only said to be so."""
