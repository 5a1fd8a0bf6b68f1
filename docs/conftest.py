"""Of the files here pytest runs the pages (`*.md`); scripts of the gallery are run by `tests/docs`."""

NEEDS = {"guide/hugging-face.md": "transformers", "guide/mlflow.md": "mlflow"}
"""Pages about other libraries, and what they need: run by `tests/third_party`."""

collect_ignore_glob = ["conf.py", "_extensions/*", "gallery/*", "auto_examples/*", "_build/*", "scripts/*", *NEEDS]
