"""Second ways to an answer, which share no code with the engine: slow, plain, and right.

- `bloom`: Hudi's bloom filters, key by key.
- `flights_oracle`: what the demo's read-optimized view has to show, from the source CSV alone. Also a script.

Suites have oracles of their own beside them: `tests/machine/oracle.py`, `tests/interop/matrix/oracle.py`.
"""
