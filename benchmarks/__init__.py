"""The same work by this engine and by its peers, in turn, as ratios: `python -m benchmarks --help`."""
