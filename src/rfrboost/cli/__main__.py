"""``python -m rfrboost.cli`` is the command ``rfrboost``."""

import sys

from rfrboost.cli import main

sys.exit(main())
