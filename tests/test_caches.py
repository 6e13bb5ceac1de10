"""What is kept between commands: where, and that a folder that cannot be used does no harm."""

import os
from pathlib import Path

import pytest

from minigpt.caches import cache_folder, compiled_code


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MINIGPT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert cache_folder() == Path.home() / ".cache" / "minigpt"
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert cache_folder() == Path("/caches/minigpt")
    monkeypatch.setenv("MINIGPT_CACHE", "/mine")
    assert cache_folder() == Path("/mine")


def test_compiled_code_is_beside_the_token_files_unless_torch_is_told_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINIGPT_CACHE", str(tmp_path))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/elsewhere")
    assert compiled_code() == Path("/elsewhere")
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR")
    assert compiled_code() == tmp_path / "compiled"
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(tmp_path / "compiled")


def test_where_it_cannot_be_torch_chooses_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "compiled").write_text("no folder")
    monkeypatch.setenv("MINIGPT_CACHE", str(tmp_path))
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    assert not compiled_code().is_dir()
    assert "TORCHINDUCTOR_CACHE_DIR" not in os.environ
