"""What Hatchling calls when it builds the package.

The README's links and pictures become absolute for PyPI, where its neighbours are not there; the
address comes from pyproject.toml, the one place that holds it. The base goes into the wheel.
"""

import re
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

# The end of a link's text, or a whole picture, and then a target that is neither an address nor a
# heading of the same page.
LINK = re.compile(r"(?P<before>!\[[^\]]*\]|\])\((?!\w+:|#)(?P<target>[^)\s]+)\)")


def with_absolute_links(text: str, repository: str) -> str:
    """The Markdown `text`, its relative links leading to the main branch of `repository`."""

    def absolute(link: re.Match[str]) -> str:
        kind = "raw" if link["before"].startswith("!") else "blob"
        return f"{link['before']}({urljoin(f'{repository}/{kind}/main/', link['target'])})"

    return LINK.sub(absolute, text)


class ReadmeHook(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        text = with_absolute_links(text, metadata["urls"]["Repository"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


class BaseHook(BuildHookInterface):
    """Puts the base into the wheel, as minigpt/base/: its files, what they are and what they come
    from, but not the programs that make it. An editable package finds it in the checkout."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        folder = Path(self.root, "data", "base")
        for file in folder.iterdir():
            if file.suffix in (".safetensors", ".json", ".md"):
                build_data["force_include"][str(file)] = f"minigpt/base/{file.name}"
