import sys
from pathlib import Path

# The zoo of problems is imported by name from several test modules.
sys.path.insert(0, str(Path(__file__).parent))
