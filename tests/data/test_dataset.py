"""Documents to a token file: what it holds, where the text is split, what the
tokenizer learns from, what the cache keeps and refuses. Then the batches drawn from it.
"""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from minigpt import UserError
from minigpt.config import TextConfig
from minigpt.data import preparation
from minigpt.data.batches import Dataset, check_length, sample_batch
from minigpt.data.corpus import find_source
from minigpt.data.token_cache import open_dataset, prepare
from minigpt.data.token_file import TokenIds
from minigpt.tokenizer import Tokenizer

law = settings(max_examples=50, deadline=None)

FABLE = "The cat sat on the mat; it's the cat's mat. There the cat eats 12 dates é 中 🙂.\n\n" * 10
any_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufeff"))


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def prepared(cache: Path, *files: Path, **config: Any) -> Dataset:
    text_config = TextConfig(files=tuple(map(str, files)), **{"tokenizer": "char", **config})
    return prepare(find_source(text_config), text_config, cache=cache, say=print)


def refusal(cache: Path, *files: Path, **config: Any) -> str:
    """The line a user gets."""
    with pytest.raises(UserError) as refused:
        prepared(cache, *files, **config)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def separated(tokenizer: Tokenizer, texts: list[str]) -> list[int]:
    """The ids of documents with the end of text between them."""
    ids = [i for text in texts for i in [tokenizer.end_of_text, *tokenizer.encode(text)]]
    return ids[1:]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For generated texts, which are written over one another."""
    return tmp_path_factory.mktemp("texts")


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows by one whenever a text is tokenized anew."""
    made: list[str] = []
    make = preparation.make_tokenizer

    def counted(kind: str, *arguments: Any) -> Tokenizer:
        made.append(kind)
        return make(kind, *arguments)

    monkeypatch.setattr(preparation, "make_tokenizer", counted)
    return made


# The tokens


@pytest.mark.parametrize("kind", ["char", "bpe"])
def test_the_tokens_decode_to_the_text(kind: str, tmp_path: Path) -> None:
    data = prepared(tmp_path, write(tmp_path / "a.txt", FABLE), tokenizer=kind, vocab_size=300)
    decode = data.tokenizer.decode
    assert decode(data.train[:].tolist()) + decode(data.validation[:].tolist()) == FABLE


@pytest.mark.parametrize("kind", ["char", "bpe"])
def test_the_text_is_split_at_a_character(kind: str, tmp_path: Path) -> None:
    data = prepared(tmp_path, write(tmp_path / "a.txt", FABLE), tokenizer=kind, vocab_size=300)
    assert data.tokenizer.decode(data.train[:].tolist()) == FABLE[: int(0.9 * len(FABLE))]


@given(text=any_text, fraction=st.floats(0.05, 0.95))
@law
def test_the_share_set_aside_is_exact(folder: Path, text: str, fraction: float) -> None:
    cut = int((1 - fraction) * len(text))
    assume(2 <= cut <= len(text) - 2)
    data = prepared(folder, write(folder / "a.txt", text), validation_fraction=fraction)
    assert data.tokenizer.decode(data.train[:].tolist()) == text[:cut]
    assert data.tokenizer.decode(data.validation[:].tolist()) == text[cut:]


def test_a_separate_validation_text_leaves_the_training_text_whole(tmp_path: Path) -> None:
    training, validation = write(tmp_path / "a.txt", "abcabc"), write(tmp_path / "b.txt", "cß")
    data = prepared(tmp_path, training, validation=(str(validation),))
    assert data.tokenizer.decode(data.train[:].tolist()) == "abcabc"
    assert data.tokenizer.decode(data.validation[:].tolist()) == "cß"


@pytest.mark.parametrize(("characters", "dtype"), [(65_535, "uint16"), (65_536, "uint32")])
def test_ids_take_two_bytes_while_they_fit(characters: int, dtype: str, tmp_path: Path) -> None:
    """The end of text is one more token than there are characters."""
    text = "".join(map(chr, range(0x10000, 0x10000 + characters)))
    data = prepared(tmp_path, write(tmp_path / "a.txt", text))
    assert data.train[:].dtype == data.validation[:].dtype == dtype
    assert [*data.train[:].tolist(), *data.validation[:].tolist()] == list(range(characters))


# Documents


def test_documents_are_separated_and_nothing_else_is(tmp_path: Path) -> None:
    files = [write(tmp_path / f"{name}.txt", name * 5) for name in "abcd"]
    data = prepared(tmp_path, *files, split="end")
    end = data.tokenizer.end_of_text
    ids = [*data.train[:].tolist(), *data.validation[:].tolist()]
    assert ids == [*[0] * 5, end, *[1] * 5, end, *[2] * 5, end, *[3] * 5]


@given(texts=st.lists(st.text("abc\n", min_size=1), min_size=1, max_size=5), jsonl=st.booleans())
@example(texts=["abcde", "fghij"], jsonl=False)
@law
def test_each_part_holds_its_documents_with_separators_between(
    folder: Path, texts: list[str], jsonl: bool
) -> None:
    """Neither part begins with a separator, wherever the text is split."""
    whole = "".join(texts)
    assume(len(whole) >= 4)
    files = [write(folder / f"{i}.txt", text) for i, text in enumerate(texts)]
    if jsonl:
        files = [write(folder / "a.jsonl", "\n".join(json.dumps({"text": t}) for t in texts))]
    data = prepared(folder, *files, validation_fraction=0.5, split="end")
    cut, position = len(whole) // 2, 0
    parts: tuple[list[str], list[str]] = ([], [])
    for text in texts:
        at = min(max(cut - position, 0), len(text))
        parts[0].append(text[:at])
        parts[1].append(text[at:])
        position += len(text)
    for ids, part in zip((data.train, data.validation), parts, strict=True):
        assert ids[:].tolist() == separated(data.tokenizer, [text for text in part if text])


@pytest.mark.parametrize("name", ["a.jsonl", "files"])
def test_an_empty_document_adds_nothing(name: str, tmp_path: Path) -> None:
    texts = ["", "abc", "", "", "defghi", ""]
    if name == "files":
        files = [write(tmp_path / f"{i}.txt", text) for i, text in enumerate(texts)]
    else:
        files = [write(tmp_path / name, "\n".join(json.dumps({"text": t}) for t in texts))]
    data = prepared(tmp_path, *files, validation_fraction=0.3, split="end")
    assert [*data.train[:].tolist(), *data.validation[:].tolist()] == [0, 1, 2, 9, *range(3, 9)]


# What the tokenizer is learned from


@pytest.mark.parametrize("separate", [False, True])
def test_a_bpe_learns_nothing_from_the_validation_text(separate: bool, tmp_path: Path) -> None:
    rare = "zyzzyva " * 20
    file, other = tmp_path / "a.txt", tmp_path / "b.txt"
    if separate:
        validation = (str(write(other, rare)),)
        data = prepared(
            tmp_path, write(file, FABLE), tokenizer="bpe", vocab_size=600, validation=validation
        )
    else:
        text = "the cat sat on the mat. " * 100 + rare
        data = prepared(tmp_path, write(file, text), tokenizer="bpe", vocab_size=600)
    tokens = [data.tokenizer.token_bytes(i) for i in range(data.tokenizer.vocab_size)]
    assert b" cat" in tokens
    assert not any(b"zy" in token for token in tokens)
    assert "zyzzyva" in data.tokenizer.decode(data.validation[:].tolist())


def test_a_character_vocabulary_covers_the_validation_text(tmp_path: Path) -> None:
    data = prepared(tmp_path, write(tmp_path / "a.txt", "a" * 18 + "bc"))
    assert data.train[:].tolist() == [0] * 18
    assert data.validation[:].tolist() == [1, 2]


# The cache


def test_a_text_is_tokenized_once(tmp_path: Path, builds: list[str]) -> None:
    file = write(tmp_path / "a.txt", FABLE)
    first = prepared(tmp_path / "cache", file)
    second = prepared(tmp_path / "cache", file.rename(tmp_path / "b.txt"), vocab_size=999)
    assert builds == ["char"]
    assert second.tokenizer.encode(FABLE) == first.tokenizer.encode(FABLE)
    assert np.array_equal(second.train[:], first.train[:])
    assert np.array_equal(second.validation[:], first.validation[:])


@pytest.mark.parametrize(
    "change",
    [
        {"files": ("b.txt",)},
        {"files": ("a.txt", "b.txt")},
        {"tokenizer": "char"},
        {"vocab_size": 301},
        {"validation_fraction": 0.2},
        {"validation": ("b.txt",)},
        {"text_field": "body"},
    ],
    ids=str,
)
def test_whatever_changes_the_tokens_has_them_made_anew(
    change: dict[str, Any], tmp_path: Path, builds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("a.txt"), FABLE)
    write(Path("b.txt"), FABLE.replace("sat", "lay"))
    usual: dict[str, Any] = {"files": ("a.txt",), "tokenizer": "bpe", "vocab_size": 300}
    for settings_ in (usual, usual | change, usual, usual | change):
        config = TextConfig(**settings_)
        prepare(find_source(config), config, cache=tmp_path / "cache")
    assert len(builds) == 2


DAMAGES: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "half an id less": ("train-00000.bin", lambda content: content[:-1]),
    "an id less": ("validation-00000.bin", lambda content: content[:-2]),
    "an id more": ("train-00000.bin", lambda content: content + b"\0\0"),
    "no ids": ("train-00000.bin", lambda content: b""),
    "no meta": ("meta.json", lambda content: b""),
    "half a meta": ("meta.json", lambda content: content[:20]),
    "meta is binary": ("meta.json", lambda content: b"\xff\xfe"),
    "meta is a list": ("meta.json", lambda content: b"[]"),
    "meta is empty": ("meta.json", lambda content: b"{}"),
    "meta is deep": ("meta.json", lambda content: b"[" * 100_000),
    "another type": ("meta.json", lambda content: content.replace(b"uint16", b"uint32")),
    "an unknown type": ("meta.json", lambda content: content.replace(b"uint16", b"object")),
    "a type that is a list": ("meta.json", lambda content: content.replace(b'"uint16"', b"[]")),
    "another id": ("train-00000.bin", lambda content: bytes([content[0] ^ 1]) + content[1:]),
    "no tokenizer": ("tokenizer.json", lambda content: b"{}"),
}


@pytest.mark.parametrize(("name", "damage"), DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_cache_is_noticed_and_made_anew(
    name: str, damage: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    file, cache = write(tmp_path / "a.txt", FABLE), tmp_path / "cache"
    before = prepared(cache, file).train[:].tolist()
    (result,) = cache.iterdir()
    (result / name).write_bytes(damage((result / name).read_bytes()))
    with pytest.raises(UserError, match=f"token cache {result} is damaged"):
        open_dataset(result)
    assert prepared(cache, file).train[:].tolist() == before
    open_dataset(result)


@pytest.mark.parametrize("name", ["train-00000.bin", "tokenizer.json"])
def test_a_cache_that_lacks_a_file_is_made_anew(name: str, tmp_path: Path) -> None:
    file, cache = write(tmp_path / "a.txt", FABLE), tmp_path / "cache"
    before = prepared(cache, file).train[:].tolist()
    (result,) = cache.iterdir()
    (result / name).unlink()
    assert prepared(cache, file).train[:].tolist() == before


def test_a_cache_that_is_no_folder_is_refused_by_name(tmp_path: Path) -> None:
    file, cache = write(tmp_path / "a.txt", FABLE), write(tmp_path / "cache", "no folder")
    assert str(cache) in refusal(cache, file)


def test_a_result_without_its_last_file_is_made_anew(tmp_path: Path, builds: list[str]) -> None:
    """meta.json is written last: a copy that stopped midway has none."""
    file, cache = write(tmp_path / "a.txt", FABLE), tmp_path / "cache"
    prepared(cache, file)
    (result,) = cache.iterdir()
    (result / "meta.json").unlink()
    (result / "train-00000.bin").write_bytes(b"half")
    data = prepared(cache, file)
    assert len(builds) == 2
    assert data.tokenizer.decode(data.train[:].tolist()) == FABLE[: len(data.train)]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError("No space left on device")])
def test_a_build_interrupted_in_its_first_shard_leaves_nothing(
    stop: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, cache = write(tmp_path / "a.txt", FABLE), tmp_path / "cache"

    def interrupted(*arguments: Any) -> Iterator[tuple[int, TokenIds]]:
        yield 3, np.arange(3, dtype=np.uint32)
        raise stop

    with monkeypatch.context() as patch:
        patch.setattr(preparation, "encode_in_pieces", interrupted)
        with pytest.raises((KeyboardInterrupt, UserError)):
            prepared(cache, file)
    assert list(cache.iterdir()) == []
    data = prepared(cache, file)
    assert len(data.train) == int(0.9 * len(FABLE))


def test_two_that_prepare_the_same_text_do_it_once(tmp_path: Path, builds: list[str]) -> None:
    """The second waits for the first, and takes what it made."""
    file, cache = write(tmp_path / "a.txt", FABLE * 500), tmp_path / "cache"
    with ThreadPoolExecutor(4) as pool:
        results = [pool.submit(prepared, cache, file) for _ in range(4)]
    assert len({result.result().train[:].tobytes() for result in results}) == 1
    assert builds == ["char"]
    assert len(list(cache.iterdir())) == 1


# Texts that are too short


@pytest.mark.parametrize("kind", ["char", "bpe"])
@pytest.mark.parametrize("text", ["", "\ufeff"])
def test_an_empty_text_is_refused_by_name(kind: str, text: str, tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", text)
    assert refusal(tmp_path, file, tokenizer=kind) == f"there is no text in {file}"


def test_white_space_is_text(tmp_path: Path) -> None:
    data = prepared(tmp_path, write(tmp_path / "a.txt", " \n\t\n" * 10))
    assert len(data.train) == 36


@pytest.mark.parametrize("text", ["a", "abc", "abcdefghij"])
def test_a_text_too_short_to_split_is_refused(text: str, tmp_path: Path) -> None:
    train = int(0.9 * len(text))
    message = refusal(tmp_path / "cache", write(tmp_path / "a.txt", text))
    assert f"{train} tokens to train on and {len(text) - train} to validate on" in message
    assert list((tmp_path / "cache").iterdir()) == []


def test_eleven_characters_can_be_split(tmp_path: Path) -> None:
    data = prepared(tmp_path, write(tmp_path / "a.txt", "abcdefghijk"))
    assert (len(data.train), len(data.validation)) == (9, 2)


def test_an_empty_validation_text_is_refused(tmp_path: Path) -> None:
    other = write(tmp_path / "b.txt", "")
    file = write(tmp_path / "a.txt", FABLE)
    assert "and 0 to validate on" in refusal(tmp_path, file, validation=(str(other),))


def test_a_context_longer_than_the_text_is_refused_with_one_that_would_do() -> None:
    tokens = np.zeros(1500, dtype=np.uint16)
    with pytest.raises(UserError, match=r"1,500 tokens.*2,048.*--context-length 1499"):
        check_length(tokens, 2048)
    with pytest.raises(UserError):
        check_length(tokens, 1500)
    check_length(tokens, 1499)


# Batches; the tokens count up, so that a window says where it begins


@given(
    context=st.integers(1, 40),
    more=st.integers(1, 60),
    batch=st.integers(1, 8),
    seed=st.integers(0, 2**63 - 1),
    step=st.integers(0, 10**9),
)
@example(context=1, more=1, batch=1, seed=2**63 - 1, step=0)
@law
def test_targets_are_the_inputs_one_later(
    context: int, more: int, batch: int, seed: int, step: int
) -> None:
    tokens = np.arange(context + more, dtype=np.uint16)
    inputs, targets = sample_batch(tokens, batch, context, seed=seed, step=step)
    assert inputs.shape == targets.shape == (batch, context)
    assert inputs.dtype == targets.dtype == torch.int64
    assert torch.equal(inputs, inputs[:, :1] + torch.arange(context))
    assert torch.equal(targets, inputs + 1)


@pytest.mark.parametrize("dtype", ["<u2", "<u4"])
def test_large_ids_stay_as_they_are(dtype: str) -> None:
    largest = np.iinfo(dtype).max
    inputs, targets = sample_batch(np.full(9, largest, dtype=dtype), 2, 4, seed=0, step=0)
    assert inputs.unique().tolist() == targets.unique().tolist() == [largest]


def test_a_step_draws_the_same_batch_whatever_was_drawn_before() -> None:
    tokens = np.arange(10_000, dtype=np.uint16)
    alone, _ = sample_batch(tokens, 8, 16, seed=1, step=5)
    np.random.seed(0)
    torch.manual_seed(0)
    for step in (7, 5, 0):
        batch, _ = sample_batch(tokens, 8, 16, seed=1, step=step)
        assert torch.equal(batch, alone) == (step == 5)


def test_steps_and_seeds_draw_different_batches() -> None:
    tokens = np.arange(60_000, dtype=np.uint16)
    seen = {
        tuple(sample_batch(tokens, 4, 1, seed=seed, step=step)[0].flatten().tolist())
        for seed in range(20)
        for step in range(20)
    }
    assert len(seen) == 400


def test_every_place_is_a_beginning_of_windows_in_the_long_run() -> None:
    """Five tokens hold three windows of two tokens and the next; the bounds are six sigma."""
    inputs, _ = sample_batch(np.arange(5, dtype=np.uint16), 1800, 2, seed=0, step=0)
    starts, counts = inputs[:, 0].unique(return_counts=True)
    assert starts.tolist() == [0, 1, 2]
    assert (counts - 600).abs().max().item() < 6 * (1800 * 1 / 3 * 2 / 3) ** 0.5


@given(
    length=st.integers(60, 1000),
    context=st.integers(1, 29),
    batch=st.integers(5, 40),
    seed=st.integers(0, 2**63 - 1),
)
@law
def test_a_pass_reads_every_token_once(length: int, context: int, batch: int, seed: int) -> None:
    """But for less than two windows where it begins and ends; each pass in an order of its own."""
    tokens = np.arange(length, dtype=np.uint16)
    in_a_pass = (length - context) // context
    steps = -(-2 * in_a_pass // batch)
    drawn = [sample_batch(tokens, batch, context, seed=seed, step=i)[0] for i in range(steps)]
    windows = torch.cat(drawn)
    orders = []
    for one_pass in (windows[:in_a_pass], windows[in_a_pass : 2 * in_a_pass]):
        read = one_pass.flatten().tolist()
        assert len(set(read)) == len(read) > length - 2 * context - 1
        orders.append(one_pass[:, 0].argsort())
        in_sequence = orders[-1].diff().eq(1).sum().item()
        assert in_a_pass < 20 or in_sequence < in_a_pass / 2
    assert in_a_pass < 20 or not torch.equal(*orders)


def test_a_pass_is_as_long_whatever_the_batch() -> None:
    tokens = np.arange(10_000, dtype=np.uint16)
    one, other = (
        torch.cat([sample_batch(tokens, b, 16, seed=1, step=i)[0] for i in range(960 // b)])
        for b in (3, 8)
    )
    assert torch.equal(one, other)


def test_a_text_of_one_window_gives_that_window() -> None:
    inputs, targets = sample_batch(np.arange(4, dtype=np.uint16), 3, 3, seed=0, step=0)
    assert inputs.tolist() == [[0, 1, 2]] * 3
    assert targets.tolist() == [[1, 2, 3]] * 3


def test_the_draws_are_the_same_on_every_machine() -> None:
    """Written down, so that a run can be resumed anywhere."""
    inputs, _ = sample_batch(np.arange(50_000, dtype=np.uint16), 6, 1, seed=5, step=7)
    assert inputs.flatten().tolist() == [3948, 3526, 14765, 18194, 47499, 45092]


def test_respelled_windows_begin_where_the_plain_ones_do(tmp_path: Path) -> None:
    """With targets one later, and the same for a process that takes only some of the rows."""
    data = prepared(tmp_path / "cache", write(tmp_path / "a.txt", FABLE), tokenizer="bpe")

    def drawn(share: float, rows: slice = slice(None)) -> tuple[torch.Tensor, torch.Tensor]:
        return sample_batch(
            data.train,
            6,
            12,
            seed=1,
            step=2,
            rows=rows,
            splitter=data.token_splitter,
            split_prob=share,
        )

    (plain, _), (inputs, targets) = drawn(0.0), drawn(0.5)
    assert torch.equal(inputs[:, 1:], targets[:, :-1])
    assert not torch.equal(inputs, plain)
    for one, other in zip(inputs.tolist(), plain.tolist(), strict=True):
        assert data.tokenizer.decode(other).startswith(data.tokenizer.decode(one))
    for part, whole in zip(drawn(0.5, slice(2, 4)), (inputs, targets), strict=True):
        assert torch.equal(part, whole[2:4])


# Sources with weights


def weighted(
    weights: tuple[float, ...], batch: int, step: int = 0, lengths: tuple[int, ...] = (10, 1000, 50)
) -> list[int]:
    """Which source each window of nine tokens and the next is from."""
    ends = [0, *accumulate(lengths)]
    sources = [range(start, stop) for start, stop in pairwise(ends)]
    tokens = np.arange(ends[-1], dtype=np.uint16)
    inputs, targets = sample_batch(
        tokens, batch, 9, seed=1, step=step, sources=sources, weights=weights
    )
    drawn = []
    for start, last in zip(inputs[:, 0].tolist(), targets[:, -1].tolist(), strict=True):
        drawn.append(next(i for i, source in enumerate(sources) if start in source))
        assert last in sources[drawn[-1]]  # no window reaches into the next source
    return drawn


@pytest.mark.parametrize("weights", [(1.0, 1.0, 1.0), (3.0, 1.0, 0.5), (1.0, 90.0, 9.0)])
def test_windows_are_drawn_from_each_source_by_its_weight(weights: tuple[float, ...]) -> None:
    """Whatever the lengths of the sources; the bounds are six sigma."""
    drawn = weighted(weights, 9000)
    for i, weight in enumerate(weights):
        share = weight / sum(weights)
        sigma = (9000 * share * (1 - share)) ** 0.5
        assert abs(drawn.count(i) - 9000 * share) < 6 * sigma


def test_weighted_windows_are_spread_evenly_over_a_source() -> None:
    tokens, sources = np.arange(15, dtype=np.uint16), [range(0, 5), range(5, 15)]
    inputs, _ = sample_batch(tokens, 9000, 2, seed=0, step=0, sources=sources, weights=(1.0, 1.0))
    for first, last, count in ((0, 2, 3), (5, 12, 8)):
        drawn = inputs[:, 0][(inputs[:, 0] >= first) & (inputs[:, 0] <= last)]
        starts, counts = drawn.unique(return_counts=True)
        assert starts.tolist() == list(range(first, last + 1))
        assert (counts - 4500 / count).abs().max().item() < 6 * (4500 / count) ** 0.5


def test_a_weighted_step_draws_the_same_batch_whatever_was_drawn_before() -> None:
    alone = weighted((3.0, 1.0, 2.0), 16, step=5)
    assert [weighted((3.0, 1.0, 2.0), 16, step=step) == alone for step in (7, 5, 0)] == [
        False, True, False,
    ]  # fmt: skip


def test_the_sources_of_a_weighted_text_are_kept_apart(tmp_path: Path) -> None:
    """Each is split for itself; another weight needs no other tokens."""
    a, b = write(tmp_path / "a.txt", "a" * 200), write(tmp_path / "b.txt", "b" * 100)
    data = prepared(tmp_path / "cache", a, b, weights=(1.0, 3.0))
    assert data.sources == (range(0, 180), range(180, 270))
    assert data.weights == (1.0, 3.0)
    assert data.train[:].tolist() == [0] * 180 + [1] * 90
    assert data.validation[:].tolist() == [0] * 20 + [2] + [1] * 10
    assert prepared(tmp_path / "cache", a, b, weights=(5.0, 3.0)).weights == (5.0, 3.0)
    assert len(list((tmp_path / "cache").iterdir())) == 1
    plain = prepared(tmp_path / "cache", a, b)
    assert plain.sources == plain.weights == ()


def test_a_folder_is_one_source(tmp_path: Path) -> None:
    for i in range(10):
        (tmp_path / "many").mkdir(exist_ok=True)
        write(tmp_path / "many" / f"{i}.txt", "a" * 50)
    other = write(tmp_path / "b.txt", "b" * 100)
    data = prepared(tmp_path / "cache", tmp_path / "many", other, weights=(1.0, 1.0))
    assert data.sources == (range(0, 9 * 51 - 1), range(9 * 51 - 1, 9 * 51 - 1 + 90))
    validation = [0] * 50 + [2] + [1] * 10
    assert data.validation[:].tolist() == validation


@pytest.mark.parametrize("short", [0, 1])
def test_a_source_too_short_to_split_is_refused(short: int, tmp_path: Path) -> None:
    files = [write(tmp_path / f"{i}.txt", "a" * (1 if i == short else 99)) for i in range(2)]
    assert "0 tokens to train on" in refusal(tmp_path / "cache", *files, weights=(1.0, 1.0))
