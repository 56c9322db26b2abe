"""``python -m lengthwise`` is the command ``lengthwise``."""

from lengthwise.cli.app import main

if __name__ == "__main__":
    main()
