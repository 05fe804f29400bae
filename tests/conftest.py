"""Every test builds anew, unless it asks for a cache of its own."""

from __future__ import annotations

import os

os.environ["RELAY_CACHE_DIR"] = "off"
