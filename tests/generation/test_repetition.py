"""The penalty on repeated passages: on which tokens it acts and how much; what authors repeat."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigpt.config import SampleConfig
from minigpt.generation.repetition import Boundaries, Passages, boundaries_of
from minigpt.generation.sampler import TokenSampler
from minigpt.tokenizer import CharacterTokenizer, Tokenizer, train_bpe

few = settings(max_examples=60, deadline=None)

V = 5  # tokens, of which the last is a separator
BOUNDARIES = replace(Boundaries.none(V), separators=np.arange(V) == V - 1)
texts = st.lists(st.integers(0, V - 1), max_size=40)


def repeated(text: Sequence[int], place: int) -> int:
    """How many tokens before a place are the same as at the end of a text, counted one by one."""
    count = 0
    while count < place and text[place - 1 - count] == text[-1 - count] != V - 1:
        count += 1
    return count


@given(text=texts)
@few
def test_the_passage_before_each_place_is_the_longest_that_ends_the_text_too(
    text: list[int],
) -> None:
    passages = Passages(text, 2, BOUNDARIES)
    expected = [repeated(text, i) for i in range(len(text))]
    assert passages.lengths.tolist() == [expected] * 2

    written = Passages((), 2, BOUNDARIES)
    for token in text:
        written.append(np.full(2, token))
    assert written.lengths.tolist() == [expected] * 2


def test_a_token_is_penalised_by_the_length_of_the_passage_that_it_would_repeat() -> None:
    """After 0 1 2 the text had 3 before; after 1 2 alone it had 0, and after 2 alone 1."""
    text = [0, 1, 2, 3, 3, 1, 2, 0, 2, 1, 0, 1, 2]
    logits = np.zeros((1, V), np.float32)
    penalised = Passages(text, 1, BOUNDARIES).penalised(
        logits, multiplier=0.5, base=2.0, allowed_length=1
    )
    assert penalised.tolist() == [[-1.0, -0.5, 0.0, -2.0, 0.0]]


def test_a_separator_ends_a_passage_and_is_never_penalised() -> None:
    end = V - 1
    logits = np.zeros((1, V), np.float32)
    strict = {"multiplier": 1.0, "base": 2.0, "allowed_length": 1}
    after_one = Passages([0, 1, end, 2, 0, 1], 1, BOUNDARIES)  # the separator would come next
    assert after_one.penalised(logits, **strict).tolist() == [[0.0] * V]
    after_two = Passages([0, 1, end, 2, 0, 1, end], 1, BOUNDARIES)  # and then 2
    assert after_two.penalised(logits, **strict).tolist() == [[0.0] * V]


def test_a_word_that_is_begun_is_written_to_its_end() -> None:
    """A name of three tokens and a verb stand twice: what goes on with the name is free."""
    begins = np.array([False, True, True, False, False])
    ends = np.array([True, True, True, True, False])
    boundaries = Boundaries(np.zeros(V, bool), begins, ends)
    text = [0, 1, 2, 3, 4]
    logits = np.zeros((1, V), np.float32)
    strict = {"multiplier": 1.0, "base": 2.0, "allowed_length": 1}

    penalised = []
    for count in range(1, 5):
        passages = Passages([*text, *text[:count]], 1, boundaries)
        penalised.append(passages.penalised(logits, **strict)[0, text[count]] < 0.0)
    assert penalised == [False, False, True, True]


# Words of scripts with spaces between them, and numbers; then characters of scripts without, some
# with marks, and emoji.
WORDS = (
    "don't don’t naïve e\u0301te\u0301 ἄνθρωπος привет 1897 ١٨٩٧ שלום كِتاب می\u200cروم हिन्दी "
    "தமிழ் 한국어 ქართული ሰላም"
).split()
CHARACTERS = ["中", "文", "の", "ว", "ที่", "😂", "❤\ufe0f"]
BYTES = train_bpe([""], 257)
TOKENIZERS = {
    "bytes": BYTES,
    "pieces": train_bpe([" ".join(WORDS[::2] + CHARACTERS)] * 9, 330),
    "characters": CharacterTokenizer(sorted({*"".join(WORDS + CHARACTERS), *" .—\n"})),
}


@pytest.mark.parametrize("tokenizer", TOKENIZERS.values(), ids=TOKENIZERS)
@given(pieces=st.lists(st.sampled_from([*WORDS, *CHARACTERS, " ", ".", "—", "\n"])))
@few
def test_no_penalty_acts_inside_a_word_or_a_character(
    tokenizer: Tokenizer, pieces: list[str]
) -> None:
    ids = np.array(tokenizer.encode("".join(pieces)), np.int64)
    lengths = [len(tokenizer.token_bytes(token)) for token in ids]
    starts = np.cumsum(lengths)[:-1]  # in bytes, of each token but the first
    ends = np.cumsum([0, *(len(piece.encode()) for piece in pieces)])  # of each piece

    is_inside = ~np.isin(starts, ends)
    assert not boundaries_of(tokenizer).are_free(ids[:-1], ids[1:])[is_inside].any()


def test_between_words_and_characters_a_penalty_acts() -> None:
    characters = TOKENIZERS["characters"]
    for text in ("中文のว😂😂中", " a b .1"):
        ids = np.array(characters.encode(text.translate({ord("a"): "e", ord("b"): "n"})))
        assert boundaries_of(characters).are_free(ids[:-1], ids[1:]).all()


def test_a_character_that_is_begun_is_written_to_its_end() -> None:
    """Of three bytes, of which each is a token, a penalty acts on the first."""
    logits = np.zeros((1, BYTES.vocab_size), np.float32)
    strict = {"multiplier": 1.0, "base": 2.0, "allowed_length": 3}
    text = BYTES.encode("中文" * 4)
    boundaries = boundaries_of(BYTES)
    penalised = [
        bool(Passages(text[:place], 1, boundaries).penalised(logits, **strict)[0, token] < 0.0)
        for place, token in enumerate(text)
    ]
    assert penalised == [False] * 9 + [True, False, False] * 5


def test_the_longest_passage_has_a_finite_penalty() -> None:
    passages = Passages([0] * 5_000, 1, BOUNDARIES)
    logits = np.zeros((1, V), np.float32)
    penalised = passages.penalised(logits, multiplier=0.8, base=1.75, allowed_length=2)
    assert np.isfinite(penalised).all() and penalised[0, 0] < -1_000


def test_each_text_has_its_own_passages_and_the_prompt_counts() -> None:
    """Two samples, which go on differently: one repeats the prompt, the other does not."""
    config = SampleConfig(temperature=0.0, samples=2, dry_multiplier=10.0, dry_allowed_length=2)
    sampler = TokenSampler(config, np.zeros(V, np.float32), [0, 1, 2], boundaries=BOUNDARIES)
    wanted = np.zeros((2, V), np.float32)
    for first, second in ((0, 3), (1, 1)):
        wanted[:] = 0.0
        wanted[0, first] = wanted[1, second] = 1.0
        assert sampler(wanted).tolist() == [first, second]
    wanted[:] = 0.0
    wanted[:, 2] = 1.0
    assert sampler.adjusted(wanted)[0, 2] < 0.0 < sampler.adjusted(wanted)[1, 2]


def test_line_ends_quotation_marks_and_colons_are_separators() -> None:
    tokenizer = CharacterTokenizer("ab \n\":“.'")
    separators = boundaries_of(tokenizer).separators
    found = {character for character in "ab \n\":“.'" if separators[tokenizer.encode(character)[0]]}
    assert found == {"\n", '"', ":", "“"}
    assert tokenizer.end_of_text is None or separators[tokenizer.end_of_text]


def test_the_layout_of_a_text_of_words_is_a_separator() -> None:
    """Spaces that move a line to the right, and a name in capitals: each line of a play may begin
    as others do. Letter by letter a space is between any two words."""
    tokenizer = train_bpe(["FOX. the fox said no"] * 9, 300)
    separators = boundaries_of(tokenizer).separators
    ids = tokenizer.encode("   the FOX. FOX said no")
    ends = {tokenizer.decode([token]) for token in ids if separators[token]}
    assert ends == {" ", "FOX"}

    in_capitals = train_bpe(["FOX. THE FOX SAID NO"] * 9, 300)  # here they say nothing
    separators = boundaries_of(in_capitals).separators
    ids = in_capitals.encode("   THE FOX. FOX SAID NO")
    assert {in_capitals.decode([token]) for token in ids if separators[token]} == {" "}

    characters = CharacterTokenizer("FOX .\n")
    found = boundaries_of(characters).separators
    assert not found[characters.encode("F OX")].any()


def test_a_quotation_mark_that_is_several_tokens_is_a_separator_by_its_last() -> None:
    tokenizer = train_bpe(["the fox said no"], 300)
    separators = boundaries_of(tokenizer).separators
    for text in ("“no”", "he said „no“", "«no»"):
        ids = tokenizer.encode(text)
        found = [tokenizer.token_bytes(token) for token in ids if separators[token]]
        marks = [token[-1:] for token in found if token.strip()]  # a lone space is one, too
        assert len(marks) == 2
        assert {*marks} <= {b"\x9c", b"\x9d", b"\x9e", b"\xab", b"\xbb"}
