"""Lines as they stand on a page, from left to right, to the order in which they are read."""

import pytest

from minigpt.data.readers.right_to_left import has_right_to_left, in_order_of_reading, is_from_right

RTL = "שלום"


@pytest.mark.parametrize(
    ("text", "from_right", "has"),
    [
        (f"{RTL} ab", True, True),
        ("אב ab", False, True),  # as many: as most texts are
        ("ab 12", False, False),
        ("", False, False),
        ("سلام", True, True),
        ("é", False, False),
    ],
)
def test_a_text_is_from_right_if_most_of_its_letters_are(
    text: str, from_right: bool, has: bool
) -> None:
    assert is_from_right(text) == from_right
    assert has_right_to_left(list(text)) == has


@pytest.mark.parametrize(
    ("drawn", "read"),
    [
        ("גבא", "אבג"),
        ("12.5 בא", "אב 12.5"),
        ("1,000$ בא", "אב 1,000$"),
        ("%50 בא", "אב %50"),
        ("x1 y בא", "אב x1 y"),
        ("(גב) א", "א (בג)"),
        (")גב( א", "א (בג)"),  # drawn as they are read: their shapes tell
        ("!בא", "אב!"),
        ("דג - בא", "אב - גד"),
        ("x בא y", "y אב x"),
    ],
)
def test_in_a_text_from_the_right_numbers_and_words_stay_as_they_are(drawn: str, read: str) -> None:
    assert in_order_of_reading(list(drawn), is_from_right=True) == read


@pytest.mark.parametrize(
    ("drawn", "read"),
    [
        ("say םולש now", "say שלום now"),
        ("a דג בא b", "a אב גד b"),
        ("a בא b דג c", "a אב b גד c"),
        ("a בא (b)", "a אב (b)"),
        ("plain 12", "plain 12"),
    ],
)
def test_in_a_text_from_the_left_words_from_the_right_are_turned(drawn: str, read: str) -> None:
    assert in_order_of_reading(list(drawn), is_from_right=False) == read


def test_a_sign_of_several_letters_stays_whole() -> None:
    assert in_order_of_reading(["ג", "אב"], is_from_right=True) == "אבג"
    assert in_order_of_reading(["ff", "i", " ", "ג", "אב"], is_from_right=False) == "ffi אבג"
