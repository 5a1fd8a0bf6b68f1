"""Candidate sets from labelling tools and annotator tables, one module per source."""
