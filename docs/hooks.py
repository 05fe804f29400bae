"""What `mkdocs build` does besides: CONTRIBUTING.md is a page, and files outside of docs/ are named, not linked."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\[([^\]]*)\]\((\.\./[^)#]*)(#[^)]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add CONTRIBUTING.md, whose links to docs/ are links to pages."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    text = re.sub(r"\]\((?!docs/|http|#)([^)]*)\)", r"](../\1)", text).replace("](docs/", "](")
    files.append(File.generated(config, "contributing.md", content=text))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Links that leave docs/ as the names of files."""
    return LINK.sub(_named, markdown)


def _named(link: re.Match[str]) -> str:
    text, path, anchor = link[1], link[2].removeprefix("../"), link[3] or ""
    if path == "CONTRIBUTING.md":
        return f"[{text}](contributing.md{anchor})"
    name = text.strip("`")
    return f"`{path}`" if name in path else f"{text} (`{path}`)"
