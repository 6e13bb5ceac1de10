"""Packages that are slow to import and that few tests need: imported where a test uses them."""

import importlib
from importlib.util import find_spec
from typing import Any

import pytest


class Lazy:
    """A module that is imported when something of it is used; pytest looks at each module of a test
    for names that begin with an underscore."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):
            raise AttributeError(attribute)
        return getattr(importlib.import_module(self._name), attribute)


def lazily(name: str, reason: str) -> Any:
    """A module for all tests of a file, which are skipped for the reason if there is none."""
    if find_spec(name.partition(".")[0]) is None:
        pytest.skip(reason, allow_module_level=True)
    return Lazy(name)
