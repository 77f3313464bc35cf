"""Every way to use a table beside Apache Hudi: a matrix of kinds of table × topics, each cell right or refused by name.

`kinds.py` names the kinds of table, `expectations.py` says what each cell does today, `oracle.py` knows what is right
from a plain list of events, and one test file per topic shows it. `table.py` prints the table in the docs from the same
expectations.
"""
