"""`python -m dalsegno` is the command `dalsegno`."""

import sys

from .cli import main

sys.exit(main())
