"""The module that ``python -m lengthwise`` runs: it starts the command ``lengthwise``."""

from lengthwise.cli.app import main

if __name__ == "__main__":
    main()
