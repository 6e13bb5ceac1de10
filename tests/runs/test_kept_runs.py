"""Runs of earlier versions, kept in `kept/` by `keep.py`: this version loads them, writes what they
wrote, and evaluates, resumes and exports them.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import minigpt
from minigpt.cli import main
from minigpt.runs.folder import GENERATION
from tests.runs.keep import PROMPT, RUN, used

KEPT = sorted(path for path in (Path(__file__).parent / "kept").iterdir() if path.is_dir())


@pytest.fixture(params=KEPT, ids=lambda path: path.name)
def expected(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """What is expected of a kept run, in a folder with a copy of it."""
    shutil.copytree(request.param, tmp_path / "kept")
    monkeypatch.chdir(tmp_path / "kept")
    monkeypatch.setenv("MINIGPT_CACHE", str(tmp_path / "cache"))
    return dict(json.loads(Path("expected.json").read_text()))


def test_a_kept_run_writes_and_predicts_as_it_did_and_learns_on(expected: dict[str, Any]) -> None:
    found = used(RUN)
    assert found["text"] == expected["text"]
    assert found["parameters"] == expected["parameters"]
    assert found["step"] == expected["step"]
    assert found["bits_per_byte"] == pytest.approx(expected["bits_per_byte"], rel=1e-4)
    assert found["val_loss"] == pytest.approx(expected["val_loss"], rel=1e-3)


def test_greedy_texts_and_those_of_temperature_1_stay_as_they_were_whatever_is_usual(
    tmp_path: Path,
) -> None:
    """What an earlier version wrote, with a model that goes round in circles."""
    run = tmp_path / "my"
    shutil.copytree(KEPT[0] / RUN, run)
    usual = {"temperature": 0.7, "dry_multiplier": 900.0, "dry_allowed_length": 1}
    (run / GENERATION).write_text(json.dumps(usual))
    writer = minigpt.load(run, "cpu")
    text = {"max_new_tokens": 60, "seed": 3}
    for temperature, expected in (
        (0, "the fox" + 30 * " n"),
        (1, "the foxcyabssdi e he bmdbon thewd crord he hee tc f oh n helhhehe i fr an kild"),
    ):
        assert writer.generate(PROMPT, temperature=temperature, **text) == expected

    text["seed"] = 2  # with which the penalty changes something
    assert writer.generate(PROMPT, **text) != writer.generate(PROMPT, dry_multiplier=0.0, **text)


def test_a_kept_run_is_exported_and_shown(
    expected: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(RUN), "--out", "for-transformers"]) == 0
    assert main(["export", str(RUN), "--to", "gguf", "--out", "for-llama.cpp"]) == 0
    assert main(["page", str(RUN)]) == 0
    assert main(["runs"]) == 0
    assert f"{RUN}: " in capsys.readouterr().out

    settings = {"max_new_tokens": 12, "temperature": 0}
    texts = [
        minigpt.load(name, "cpu").generate(PROMPT, **settings) for name in (RUN, "for-transformers")
    ]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("folder", KEPT, ids=lambda path: path.name)
def test_a_kept_run_is_small_and_holds_data_only(folder: Path) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    kinds = {".txt", ".json", ".jsonl", ".safetensors"}
    assert {file.suffix for file in files} <= kinds
    assert sum(file.stat().st_size for file in files) < 80_000
