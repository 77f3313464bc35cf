"""Asks a Trino by its own Python client: one JSON line in, one out. `tests/interop/trino/server.py` is the other end.

Run by the Python of `scripts/trino-setup`, which has the client.

    python trino_ask.py PORT
    "SELECT 1"
    {"columns": ["_col0"], "rows": [[1]]}
"""

from __future__ import annotations

import json
import sys

from trino.dbapi import connect
from trino.exceptions import Error, TrinoQueryError


def main() -> None:
    with connect(host="127.0.0.1", port=int(sys.argv[1]), user="tests", timezone="UTC") as connection:
        for line in sys.stdin:
            cursor = connection.cursor()
            try:
                cursor.execute(json.loads(line))
                rows = cursor.fetchall()
                answer = {"columns": [column[0] for column in cursor.description or ()], "rows": rows}
            except TrinoQueryError as error:
                answer = {"error": f"{error.error_name}: {error.message}"}
            except (Error, OSError) as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(answer, default=str), flush=True)


if __name__ == "__main__":
    main()
