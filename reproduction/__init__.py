"""The paper's experiments as configuration, and what turns them into tables, plots and a page.

`cells` says what is to be computed, `runner` computes it, `results` keeps it; `result_tables`, `result_plots` and
`reproduction_page` show it.
"""
