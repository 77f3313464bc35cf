"""`python -m hudi_assets.demo`, what `make run` runs."""

import sys

from hudi_assets.demo.replay import main

if __name__ == "__main__":
    sys.exit(main())
