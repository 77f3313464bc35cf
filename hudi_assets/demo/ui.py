"""What `make ui` asks for before Dagster starts: its directory, and a port that is free.

Dagster's own process would end in a traceback where the port is taken.
"""

from __future__ import annotations

import socket
import sys

from hudi_assets.cli.output import show_error
from hudi_assets.engine import EnvironmentProblem, InvalidInput, problem_of

HOST = "127.0.0.1"


def check_port(text: str) -> int:
    """The port's number. Raises `InvalidInput` for what is none, `EnvironmentProblem` where it cannot be had."""
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 1 << 16:
        raise InvalidInput(f"PORT={text} is no port.", hint="Give a number from 1 to 65535.")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # one that was just given up is free
        try:
            probe.bind((HOST, int(text)))
        except OSError as error:
            raise EnvironmentProblem(
                f"Dagster's UI cannot have its port: {error.strerror}.",
                where=f"{HOST}:{text}",
                hint="Choose another one: make ui PORT=3001.",
            ) from error
    return int(text)


def main(port: str) -> int:
    """Exit code 0, or 1 with the reason on stderr."""
    # Imported here: Dagster takes seconds.
    from hudi_assets import home
    from hudi_assets.demo import driver

    try:
        check_port(port)
        driver.prepare_instance(home.dagster_home())
    except Exception as error:
        problem = problem_of(error)
        if problem is None:
            raise
        show_error(problem, as_json=False)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
