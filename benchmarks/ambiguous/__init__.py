"""Calibration, decisions and estimates where labels are ambiguous: setwise and others on the same data.

    make benchmark                 all questions, draws and data (an hour or two on two cores); writes docs/benchmark.md
    make benchmark FAST=1          the same with few draws, in minutes; prints, and keeps nothing

A *question* (`questions/`) is one file: what a method gets, what it returns, and how that is measured. A *data set*
(`data_sets.py`) is a card and a function that reads it. A *method* is a function in a file of `rivals/`, which says by
`@answers` which question it answers, what it guarantees, and what it needs. `README.md` says how to add one of each.
"""
