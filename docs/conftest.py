"""Of the files here pytest runs the pages (`*.md`); scripts of the gallery are run by `tests/docs`."""

collect_ignore_glob = ["conf.py", "_extensions/*", "gallery/*", "auto_examples/*", "_build/*", "scripts/*"]
