"""What is planned for a text, by its size alone: always something that can be trained."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigpt.config import GPTConfig, TrainConfig, UserError
from minigpt.training.plan import plan_model, plan_vocabulary

few = settings(max_examples=25, deadline=None)

# 1 KB to 10 GB, every size of a text as likely as every other one.
text_sizes = st.floats(3, 10).map(lambda power: int(10**power))
token_counts = st.floats(0.31, 9.7).map(lambda power: int(10**power))  # from 2 on
trainings = st.one_of(
    st.builds(TrainConfig, minutes=st.floats(0.01, 1000)),
    st.builds(TrainConfig, steps=st.integers(1, 10**6), batch_size=st.integers(1, 64)),
)


# The vocabulary


@given(small=text_sizes, large=text_sizes)
@few
def test_a_longer_text_never_gets_a_smaller_vocabulary(small: int, large: int) -> None:
    small, large = sorted((small, large))
    assert 257 <= plan_vocabulary(small) <= plan_vocabulary(large) <= 1 << 16


@pytest.mark.parametrize(
    ("size", "vocabulary"),
    [(0, 320), (1000, 320), (1 << 19, 1024), (1 << 20, 2048), (10**10, 16384)],
)
def test_there_is_about_one_token_for_512_bytes(size: int, vocabulary: int) -> None:
    assert plan_vocabulary(size) == vocabulary


# The model


@given(tokens=token_counts, training=trainings)
@few
def test_a_model_can_be_made_from_the_plan_and_its_context_fits_the_text(
    tokens: int, training: TrainConfig
) -> None:
    plan = plan_model(tokens, training)
    for family in ("modern", "gpt2"):
        GPTConfig(vocab_size=320, family=family, **plan)
    assert 1 <= plan["context_length"] < tokens
    assert plan["context_length"] <= 8 or plan["context_length"] * 16 <= tokens


def test_a_long_text_gets_the_whole_context_and_a_short_one_less() -> None:
    contexts = [plan_model(n, TrainConfig())["context_length"] for n in (2, 9, 200, 1000, 10**6)]
    assert contexts == [1, 8, 8, 32, 128]


def test_a_text_read_more_often_gets_more_dropout() -> None:
    short, long = TrainConfig(minutes=1), TrainConfig(minutes=100)
    assert plan_model(10**8, short)["dropout"] == 0.0
    assert 0.0 < plan_model(10**5, short)["dropout"] < plan_model(10**5, long)["dropout"] < 0.5
    by_steps = [TrainConfig(steps=n, batch_size=10) for n in (1, 10**6)]
    dropouts = [plan_model(10**5, training)["dropout"] for training in by_steps]
    assert dropouts[0] == 0.0 < dropouts[1]


def test_any_even_width_gets_heads_that_both_families_accept() -> None:
    """A head of the modern family turns pairs of components, so its size must be even."""
    refused = []
    for width in range(2, 1025, 2):
        plan = plan_model(10**6, TrainConfig(), width)
        assert plan["emb_dim"] == width and width % plan["num_heads"] == 0
        GPTConfig(vocab_size=320, family="gpt2", **plan)
        try:
            GPTConfig(vocab_size=320, family="modern", **plan)
        except UserError:
            refused.append(width)
    assert refused == []


def test_an_odd_width_gets_heads_that_gpt2_accepts_and_modern_refuses_by_name() -> None:
    for width in range(1, 1024, 2):
        plan = plan_model(10**6, TrainConfig(), width)
        GPTConfig(vocab_size=320, family="gpt2", **plan)
        with pytest.raises(UserError, match=f"emb_dim must be an even multiple .* got {width}"):
            GPTConfig(vocab_size=320, family="modern", **plan)


def test_a_wide_model_has_heads_of_64() -> None:
    heads = [plan_model(10**6, TrainConfig(), width)["num_heads"] for width in (32, 128, 384, 768)]
    assert heads == [1, 2, 6, 12]
