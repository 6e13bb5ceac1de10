"""Figures of tales.txt, and what is wrong with it: python data/check_tales.py [FILE]

Exit status 1 if a rule is broken: the length of a tale, plain ASCII, names from a fixed stock,
quotation marks in pairs, few words, and hardly a sequence of words that stands in two tales.
"""

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

BETWEEN = "\n\n<|endoftext|>\n\n"  # two tales
LEAST_BYTES = 800_000
WORDS_OF_A_TALE = (60, 200)
DIFFERENT_WORDS = 3000  # at most
COVERAGE = 0.94  # at least, of all words by the thousand most frequent
SHARED = {5: 0.08, 8: 0.01}  # words of a sequence: at most this share stands in several tales
FORMULA = 0.05  # at most this share of the tales begins, or ends, with the same words
NAMES = """
Alice Anna Bella Ben Biscuit Bruno Button Clara Daisy Dan Ella Emma Finn Fred Greta
Hans Hugo Ida Jack Jane Jim Joe Kate Kim Leo Lily Lucy Luke Mark Max Mia Molly Moss
Ned Nell Nina Nora Olga Oscar Otto Patch Paul Pepper Peter Pip Rex Rosa Ruth Sam Sara
Snowy Sol Tess Tim Tom Una Vera Walter Will Zoe
"""
TITLES = "I Mr Mrs Mama Papa Grandma Grandpa Aunt Uncle"
DAYS = "Monday Mondays Saturday Saturdays Sunday Sundays"


def main(file: Path) -> int:
    """Print the figures; the exit status."""
    text = file.read_text(encoding="utf-8")
    tales = text.strip().split(BETWEEN)
    words = [words_of(tale) for tale in tales]
    counts = Counter(word for tale in words for word in tale)
    total = sum(counts.values())
    coverage = sum(count for _, count in counts.most_common(1000)) / total
    print(f"{len(text.encode()):,} bytes, {len(tales):,} tales, {total:,} words")
    print(
        f"{len(counts):,} different words; the 1,000 most frequent are {coverage:.1%} of the text"
    )
    problems = list(wrong(tales, words))
    for n, limit in SHARED.items():
        share, most = shared(words, n)
        print(f"{share:.2%} of the sequences of {n} words stand in several tales: {shown(most)}")
        if share > limit:
            problems.append(f"more than {limit:.0%} of the sequences of {n} words")
    beginnings = Counter(" ".join(tale[:3]) for tale in words)
    ends = Counter(" ".join(tale[-3:]) for tale in words)
    for name, found in (("begin", beginnings), ("end", ends)):
        print(f"tales {name} with: {shown(found)}")
        if max(found.values()) > FORMULA * len(tales):
            problems.append(f"too many tales {name} alike")
    if len(text.encode()) < LEAST_BYTES:
        problems.append(f"fewer than {LEAST_BYTES:,} bytes")
    if len(counts) > DIFFERENT_WORDS or coverage < COVERAGE:
        problems.append("too many different words")
    print("\n".join(problems) or "nothing is wrong")
    return 1 if problems else 0


def words_of(tale: str) -> list[str]:
    """The words in small letters: "don't" and "seventy-two" are one each."""
    return re.findall(r"[a-z]+(?:['-][a-z]+)*", tale.lower())


def wrong(tales: list[str], words: list[list[str]]) -> Iterable[str]:
    """What is wrong with single tales."""
    known = set(f"{NAMES} {TITLES} {DAYS}".split())
    small = set(re.findall(r"[a-z]+", " ".join(tales)))  # what is also written without a capital
    if len(set(tales)) < len(tales):
        yield "a tale stands there twice"
    for tale, its_words in zip(tales, words, strict=True):
        place = f"{tale[:40]!r}..."
        if not WORDS_OF_A_TALE[0] <= len(its_words) <= WORDS_OF_A_TALE[1]:
            yield f"{place} has {len(its_words)} words"
        if not tale.isascii() or "\t" in tale:
            yield f"{place} is not plain ASCII"
        if "\n\n" in tale or any(line != line.strip() for line in tale.split("\n")):
            yield f"{place} has an empty line or spaces at the end of one"
        if any(paragraph.count('"') % 2 for paragraph in tale.split("\n")):
            yield f"{place} has a quotation mark without its other half"
        unknown = names_in(tale) - known
        if unknown := {name for name in unknown if name.lower() not in small}:
            yield f"{place} has names outside the stock: {', '.join(sorted(unknown))}"


def names_in(tale: str) -> set[str]:
    """Words with a capital that do not begin a sentence or a speech, "Ben's" as "Ben"."""
    return set(re.findall(r"(?<=[a-z,;] )([A-Z][A-Za-z]*)", tale))


def shared(words: list[list[str]], n: int) -> tuple[float, Counter[str]]:
    """The share of sequences of n words that stand in several tales, and in how many each does."""
    tales_with: defaultdict[tuple[str, ...], set[int]] = defaultdict(set)
    sequences = [[tuple(tale[i : i + n]) for i in range(len(tale) - n + 1)] for tale in words]
    for number, its_sequences in enumerate(sequences):
        for sequence in its_sequences:
            tales_with[sequence].add(number)
    repeated = Counter(
        {" ".join(key): len(value) for key, value in tales_with.items() if len(value) > 1}
    )
    total = sum(map(len, sequences))
    again = sum(len(tales_with[s]) > 1 for its_sequences in sequences for s in its_sequences)
    return again / total, repeated


def shown(counts: Counter[str]) -> str:
    """The most frequent ones."""
    return ", ".join(f"{text!r} ({count})" for text, count in counts.most_common(6))


if __name__ == "__main__":
    given = sys.argv[1:] or [str(Path(__file__).parent / "tales.txt")]
    sys.exit(main(Path(given[0])))
