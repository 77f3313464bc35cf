"""A table in pictures: `pictures` draws them, for Dagster and for the page, and `page` is that of `hudi-assets report`.

Needs matplotlib. Imports no Dagster.
"""
