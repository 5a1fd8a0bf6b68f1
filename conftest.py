"""One thread per test process: on small arrays several are slower, and the processes share the machine."""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before NumPy and torch are loaded; processes that tests start inherit it
