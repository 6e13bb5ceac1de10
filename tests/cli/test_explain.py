"""minigpt explain: why a token was likely, as two tables or as a record."""

import json
import re
from pathlib import Path

import pytest

import minigpt

from .conftest import Type, assert_refused

TEXT = "the fox asked a crow"


@pytest.fixture(autouse=True)
def where_it_lies(tiny_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tiny_run.parents[1])


def numbers(table: str) -> list[float]:
    """Those of the first column."""
    return [float(found) for found in re.findall(r"^ *([+-]\d+\.\d+)  ", table, re.MULTILINE)]


def test_the_last_token_is_explained_by_a_sentence_and_two_tables(
    tiny_run: Path, type_: Type
) -> None:
    writer = minigpt.load(tiny_run)
    ids = writer.tokenizer.encode(TEXT)
    why = writer.explain(TEXT, len(ids) - 1)
    status, out, err = type_("explain", tiny_run, TEXT)
    assert status == 0 and str(tiny_run) in err

    sentence, parts, words = re.split(r"\n\n(?=[A-Z])", out)
    assert "the␣fox␣asked" in sentence and f"{abs(why.logit):.2f}" in sentence
    added = numbers(parts)
    assert len(added) == len(why.parts)
    assert sum(added) == pytest.approx(why.logit, abs=0.01 * len(added))
    assert [abs(one) for one in added] == sorted(map(abs, added), reverse=True)
    assert all(f"head {head}" in parts for head in why.heads)

    shown = {int(i): float(bits) for bits, i in re.findall(r"([+-]\S+) +(\d+)  ", words)}
    assert len(shown) == min(len(ids) - 2, 8)
    assert shown == pytest.approx({i: why.words[i] for i in shown}, abs=0.01)


def test_a_record_has_all_that_python_returns(tiny_run: Path, type_: Type) -> None:
    writer = minigpt.load(tiny_run)
    why = writer.explain(TEXT, 2)
    _, out, _ = type_("explain", tiny_run, TEXT, "--place", "2", "--json")
    record = json.loads(out)
    assert (record["text"], record["place"]) == (TEXT, 2)
    assert len(record["tokens"]) == len(writer.tokenizer.encode(TEXT))
    assert record["parts"] == why.parts and record["heads"] == why.heads
    assert record["words"] == {str(i): bits for i, bits in why.words.items()}
    assert (record["logit"], record["probability"]) == (why.logit, why.probability)


def test_a_backslash_and_n_are_a_new_line(tiny_run: Path, type_: Type) -> None:
    for typed in (["explain", tiny_run, r"the\nfox"], ["explain", r"the\nfox"]):
        _, out, _ = type_(*typed, "--json")
        assert json.loads(out)["text"] == "the\nfox"


def test_many_parts_and_words_are_summed_up(tiny_run: Path, type_: Type) -> None:
    _, out, _ = type_("explain", tiny_run, f"{TEXT} " * 5)
    assert "other tokens changed it less" in out


def test_the_second_token_has_no_words_to_show(tiny_run: Path, type_: Type) -> None:
    """Only the one before it, which nothing later could look at."""
    status, out, _ = type_("explain", tiny_run, TEXT, "--place", "1")
    assert status == 0 and "bits" not in out


def test_one_argument_is_a_text_and_the_newest_run_explains_it(tiny_run: Path, type_: Type) -> None:
    status, _, err = type_("explain", f"{TEXT} " * 100)  # too long for the name of a file
    assert status == 0 and str(tiny_run.relative_to(Path.cwd())) in err


def test_bad_input_is_refused_in_one_line(tiny_run: Path, type_: Type) -> None:
    assert_refused(type_("explain", tiny_run), "give a text", "explain base")
    assert_refused(type_("explain", "nowhere", TEXT), "no such run: nowhere")
    assert_refused(type_("explain", tiny_run, ""), "give a text")
    assert_refused(type_("explain", tiny_run, "t"), "give a longer text")
    assert_refused(type_("explain", tiny_run, TEXT, "--place", "0"), "place must be between 1 and")
    assert_refused(type_("explain", tiny_run, TEXT, "--place", "99"), "got 99")
    assert_refused(type_("explain", tiny_run, TEXT, "--place", "two"), "--place")
