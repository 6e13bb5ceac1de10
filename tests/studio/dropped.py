"""Texts of which all files have arrived, without a studio."""

from collections.abc import Mapping
from pathlib import Path

from minigpt.studio.texts import store as texts
from minigpt.studio.workspace import Workspace


def dropped(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """The folder of a text with these files, in a folder of texts and runs."""
    workspace = Workspace(root)
    text = texts.create(workspace, list(files), [0] * len(files))
    folder = workspace.text_folder(text)
    for file, data in zip(texts.describe_text(folder)["files"], files.values(), strict=True):
        path = folder / "files" / file["kept"]
        path.write_bytes(data.encode() if isinstance(data, str) else data)
    texts.complete(folder)
    return folder
