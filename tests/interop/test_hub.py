"""Models by name: from the cache, else from the network, else one line that says what was tried."""

import sys
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub.errors import LocalEntryNotFoundError

import minigpt
from minigpt import UserError
from minigpt.interop.hub import is_hub_name
from minigpt.interop.huggingface import write_folder

from .examples import byte_pairs, random_model


class Hub:
    """Stands in for huggingface_hub's snapshot_download."""

    def __init__(self, cached: Path | None, online: Path | None):
        self.cached, self.online = cached, online
        self.calls: list[bool] = []

    def __call__(self, name: str, *, local_files_only: bool = False, allow_patterns: Any) -> str:
        assert not any(pattern.endswith((".bin", ".py")) for pattern in allow_patterns)
        self.calls.append(local_files_only)
        found = self.cached if local_files_only else self.online
        if found is None:
            raise LocalEntryNotFoundError(f"{name} cannot be reached\nand more lines")
        return str(found)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "snapshot"
    folder.mkdir()
    write_folder(folder, random_model("gpt2"), byte_pairs(), card="")
    return folder


def install(monkeypatch: pytest.MonkeyPatch, cached: Path | None, online: Path | None) -> Hub:
    hub = Hub(cached, online)
    monkeypatch.setattr("huggingface_hub.snapshot_download", hub)
    return hub


def test_a_cached_model_is_loaded_without_the_network(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = install(monkeypatch, cached=folder, online=None)
    assert minigpt.load("gpt2", "cpu").model.config.emb_dim == 21
    assert hub.calls == [True]


def test_a_model_that_is_not_cached_is_downloaded(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = install(monkeypatch, cached=None, online=folder)
    assert minigpt.load("owner/gpt2", "cpu").model.config.emb_dim == 21
    assert hub.calls == [True, False]


def test_a_cached_part_of_a_model_is_completed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = tmp_path / "part"
    part.mkdir()
    (part / "config.json").write_text("{}")
    hub = install(monkeypatch, cached=part, online=folder)
    minigpt.load("gpt2", "cpu")
    assert hub.calls == [True, False]


def test_offline_one_line_says_what_was_looked_for_and_where(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from huggingface_hub import constants

    install(monkeypatch, cached=None, online=None)
    with pytest.raises(UserError) as error:
        minigpt.load("gpt2", "cpu")
    for words in ("no such run: gpt2", constants.HF_HUB_CACHE, "gpt2 cannot be reached"):
        assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_the_hub_itself_offline_gives_that_line_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing replaced but the switch that forbids the network."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(UserError, match=r"no such run: no-such/model .* could not be downloaded"):
        minigpt.load("no-such/model", "cpu")


def test_without_the_hubs_package_the_way_to_install_it_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(UserError, match=r"gpt2 is no folder here.*pip install"):
        minigpt.load("gpt2", "cpu")


def test_a_slip_of_the_pen_is_not_looked_for_on_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    assert is_hub_name("gpt2") and is_hub_name("openai-community/gpt2")
    for name in ("runs/fabels", "/gpt2", "../gpt2", "a/b/c", "./gpt2", "", "runs/", "~/gpt2", ".x"):
        assert not is_hub_name(name), name
