"""An export of a run with voices: how other programs write in one."""

from pathlib import Path

import pytest

import minigpt
from minigpt.cli import main


@pytest.fixture(scope="module")
def folder(voiced_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("voices") / "hf"
    assert main(["export", str(voiced_run), "--out", str(out)]) == 0
    return out


def test_transformers_reads_a_mark_and_a_prompt_as_the_writer_does(
    voiced_run: Path, folder: Path
) -> None:
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    for name in ("LOUD", "quiet"):
        writer = minigpt.load(voiced_run).in_voice(name)
        prompt = tokenizer(f"{name}:\nthe fox", return_tensors="pt")
        ids = [*writer.mark, *writer.tokenizer.encode("the fox")]
        assert prompt["input_ids"][0].tolist() == ids
        written = model.generate(
            input_ids=prompt["input_ids"], do_sample=False, max_new_tokens=10, eos_token_id=None
        )
        (sample,) = writer.samples("the fox", temperature=0, max_new_tokens=10)
        assert written[0, len(ids) :].tolist() == list(sample.token_ids)


def test_the_card_names_the_voices_and_how_to_write_in_one(folder: Path) -> None:
    card = (folder / "README.md").read_text()
    assert "## Voices" in card and "- `LOUD`\n- `quiet`" in card
    assert "tokenizer('LOUD:\\n" in card


def test_the_modelfile_makes_the_system_prompt_the_mark(voiced_run: Path, tmp_path: Path) -> None:
    pytest.importorskip("gguf")
    out = tmp_path / "gguf"
    typed = ["export", str(voiced_run), "--to", "gguf", "--out", str(out), "--as", "qui"]
    assert main(typed) == 0
    lines = (out / "Modelfile").read_text().splitlines()
    assert 'TEMPLATE """{{ if .System }}{{ .System }}:' in lines
    assert '{{ end }}{{ .Prompt }}"""' in lines
    assert 'SYSTEM """quiet"""' in lines
