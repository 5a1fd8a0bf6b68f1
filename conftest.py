"""One thread per test process: on small arrays several are slower, and the processes share the machine."""

import os
from importlib.util import find_spec

os.environ["OMP_NUM_THREADS"] = "1"  # before NumPy and torch are loaded; processes that tests start inherit it

# Its examples and tests run where MLflow is: `make test-third-party`.
collect_ignore = [] if find_spec("mlflow") else ["src/setwise/mlflow.py"]
