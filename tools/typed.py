"""How many public names have a type that pyright knows: ``make package`` runs it.

scikit-learn has no types, so that an estimator derives from something unknown; the rest should be
known.
"""

import json
import subprocess
import sys

# Share of public names, in percent.
LEAST = 95.0


def completeness() -> float:
    """Pyright's figure for the installed package, in percent."""
    command = ["pyright", "--outputjson", "--verifytypes", "rfrboost", "--ignoreexternal"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return 100 * float(json.loads(done.stdout)["typeCompleteness"]["completenessScore"])


if __name__ == "__main__":
    share = completeness()
    print(f"{share:.1f} % of public names have known types; {LEAST:.0f} % are asked for.")
    sys.exit(share < LEAST)
