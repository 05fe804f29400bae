"""Installing a package of the tests, as `pip install --no-deps --target` does, without a network or a build tool."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path
from typing import Any


def install(folder: Path, target: Path) -> Path:
    """Copy the packages of a project there, with the metadata that names its entry points; returns `target`."""
    project: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text())
    about = project["project"]
    for package in project["tool"]["setuptools"]["packages"]:
        shutil.copytree(folder / package, target / package, ignore=shutil.ignore_patterns("__pycache__"))
    info = target / f"{about['name'].replace('-', '_')}-{about['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {about['name']}\nVersion: {about['version']}\n")
    (info / "entry_points.txt").write_text(
        "".join(
            f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
            for group, points in about["entry-points"].items()
        )
    )
    return target
