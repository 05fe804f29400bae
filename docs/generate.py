"""Writes all that is derived: modules (`front_doors.py`), then pages (`pages.py`) and the
picture of stages (`picture.py`), which import them."""

import subprocess
import sys
from pathlib import Path

for name in ("front_doors.py", "pages.py", "picture.py"):
    subprocess.run([sys.executable, Path(__file__).parent / name], check=True)
