"""Texts whose files have come, without a studio."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from minigpt.studio.texts import upload
from minigpt.studio.workspace import Workspace


def dropped(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """The folder of a text with these files, in a folder of texts and runs."""
    folder = upload.create(Workspace(root), {})
    for name, data in files.items():
        receive(folder, name, data.encode() if isinstance(data, str) else data)
    return folder


def receive(folder: Path, name: str, data: bytes, expected: int = 0) -> str:
    """Let a file come into a text, a few bytes at a time; the name under which it is kept."""

    async def parts() -> AsyncIterator[bytes]:
        for begin in range(0, len(data), 100_000):
            yield data[begin : begin + 100_000]

    receiving = upload.receive(folder, name, parts(), expected)
    with ThreadPoolExecutor(max_workers=1) as others:  # a test of the browser has a loop already
        return others.submit(asyncio.run, receiving).result()
