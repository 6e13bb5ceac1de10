"""What the tests of data/ share."""

from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For generated texts, which are written over one another."""
    return tmp_path_factory.mktemp("texts")
