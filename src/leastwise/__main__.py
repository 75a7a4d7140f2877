"""``python -m leastwise`` is the command line."""

import sys

from leastwise.cli import main

if __name__ == "__main__":
    sys.exit(main())
