"""`python bench/run.py [--quick] [--json FILE]`: this source tree's bench, the same as `python -m dalsegno bench`."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    from dalsegno.cli import main

    sys.exit(main(["bench", *sys.argv[1:]]))
