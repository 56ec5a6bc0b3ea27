"""``python -m rfrboost.cli`` runs the command ``rfrboost``."""

import sys

from rfrboost.cli import main

sys.exit(main())
