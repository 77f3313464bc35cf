"""Configurations of merge-on-read tables that unmodified Apache Hudi writes, and what works here on each.

`configuration.py` says what a configuration is, and `writes.py` what Hudi writes into its table. `whole_list.py` has
all of them, from the lists `of_….py`. `life.py` lives the life of one table and says what was seen. `test_zoo.py`
does so with all, and compares with what is kept (`seen.py`). `page.py` makes docs/reference/zoo.md of the list and of
what is kept. Begin with a line in one of the lists.
"""
