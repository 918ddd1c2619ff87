"""``python -m turnproof`` is the command ``turnproof``."""

import sys

from turnproof.cli import main

sys.exit(main())
