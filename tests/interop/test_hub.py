"""Models of the hub, named `hf:...`: from its cache, else from the network, else one line that says
what was tried. A name without that prefix never reaches the network."""

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants
from huggingface_hub.utils import LocalEntryNotFoundError

import minigpt
from minigpt import SampleConfig, UserError
from minigpt.interop.huggingface import write_folder
from minigpt.runs.folder import GENERATION

from .examples import byte_pairs, random_model, weights_of


class Hub:
    """Stands in for huggingface_hub's snapshot_download."""

    def __init__(self) -> None:
        self.cached: Path | None = None
        self.online: Path | None = None
        self.calls: list[tuple[str, bool]] = []
        self.files: list[str] = []  # the patterns of the last call

    def __call__(self, name: str, *, local_files_only: bool = False, allow_patterns: Any) -> str:
        assert not any(pattern.endswith((".bin", ".py")) for pattern in allow_patterns)
        self.calls.append((name, local_files_only))
        self.files = allow_patterns
        found = self.cached if local_files_only else self.online
        if found is None:
            raise LocalEntryNotFoundError(f"{name} cannot be reached\nand more lines")
        return str(found)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Hub:
    hub = Hub()
    monkeypatch.setattr("huggingface_hub.snapshot_download", hub)
    monkeypatch.chdir(tmp_path)
    return hub


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "snapshot"
    folder.mkdir()
    model = random_model("gpt2")
    write_folder(folder, model.config, weights_of(model), byte_pairs())
    return folder


def test_a_cached_model_is_loaded_without_the_network(hub: Hub, folder: Path) -> None:
    hub.cached = folder
    assert minigpt.load("hf:gpt2", "cpu").model.config.emb_dim == 21
    assert hub.calls == [("gpt2", True)]


def test_a_model_that_is_not_cached_is_downloaded(hub: Hub, folder: Path) -> None:
    hub.online = folder
    assert minigpt.load("hf:owner/gpt2", "cpu").model.config.emb_dim == 21
    assert hub.calls == [("owner/gpt2", True), ("owner/gpt2", False)]


def test_how_a_model_is_sampled_comes_with_it(hub: Hub, folder: Path) -> None:
    (folder / GENERATION).write_text('{"temperature": 0.6}')
    hub.online = folder
    assert minigpt.load("hf:owner/gpt2", "cpu").usual == SampleConfig(temperature=0.6)
    assert GENERATION in hub.files


def test_a_cached_part_of_a_model_is_completed(hub: Hub, folder: Path, tmp_path: Path) -> None:
    hub.cached, hub.online = tmp_path / "part", folder
    hub.cached.mkdir()
    (hub.cached / "config.json").write_text("{}")
    minigpt.load("hf:gpt2", "cpu")
    assert hub.calls == [("gpt2", True), ("gpt2", False)]


def test_a_cached_model_without_its_tokenizer_is_completed(
    hub: Hub, folder: Path, tmp_path: Path
) -> None:
    """Programs that only run a model never fetch the tokenizer."""
    hub.cached, hub.online = tmp_path / "part", folder
    shutil.copytree(folder, hub.cached)
    (hub.cached / "tokenizer.json").unlink()
    minigpt.load("hf:owner/model", "cpu")
    assert hub.calls == [("owner/model", True), ("owner/model", False)]

    hub.online = None
    with pytest.raises(UserError, match=r"part has no tokenizer\.json"):
        minigpt.load("hf:owner/model", "cpu")


def test_without_a_network_one_line_says_what_was_looked_for_and_where(hub: Hub) -> None:
    with pytest.raises(UserError) as error:
        minigpt.load("hf:gpt2", "cpu")
    for words in ("hf:gpt2", constants.HF_HUB_CACHE, "gpt2 cannot be reached"):
        assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_without_the_hubs_package_the_user_is_told_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(UserError, match=r'hf:gpt2 needs: pip install "minigpt-text\[hub\]"'):
        minigpt.load("hf:gpt2", "cpu")


@pytest.mark.parametrize(
    "name", ["fabels", "runs/fabels", "run/fables", "gpt2", "openai/gpt2", "a/b/c", "HF:gpt2"]
)
def test_a_name_without_the_prefix_never_asks_the_hub(name: str, hub: Hub, folder: Path) -> None:
    hub.cached = hub.online = folder
    with pytest.raises(UserError, match=r"no such run: .* hf:NAME"):
        minigpt.load(name, "cpu")
    assert hub.calls == []


def test_a_mistyped_run_is_answered_with_the_runs_there_are(
    hub: Hub, tiny_run: Path, tmp_path: Path
) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/fables").symlink_to(tiny_run)
    with pytest.raises(UserError, match=r"^no such run: runs/fabels \(did you mean runs/fables\?"):
        minigpt.load("runs/fabels", "cpu")
