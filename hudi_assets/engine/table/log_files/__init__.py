"""Log files as records. `reader` finds the blocks that count and reads them; `summaries` tells what selection needs to
know of a log file, from its blocks' headers or, where those do not say, its records.
"""
