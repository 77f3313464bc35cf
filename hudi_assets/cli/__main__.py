"""`python -m hudi_assets.cli`: the command `hudi-assets`."""

from hudi_assets.cli.commands import main

if __name__ == "__main__":
    main()
