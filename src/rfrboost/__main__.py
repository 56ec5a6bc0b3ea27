"""``python -m rfrboost`` runs the command ``rfrboost``, which needs the extra ``cli``."""

import sys

from rfrboost.cli import main

sys.exit(main())
