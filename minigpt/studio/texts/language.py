"""Which language a text is in, by the letters and the short words that it has most of."""

import re
from collections import Counter

_SAMPLE = 200_000  # characters
_FEWEST_WORDS = 20  # that have to be known
_CLEARLY = 1.2  # times as many as of the next language

# The short words that each language has most of, by its code in ISO 639-1.
_WORDS = {
    "en": "the and of to in that it is was he for on with his as i at be you she had not her but",
    "de": "der die und das in ich zu den es nicht er sie ist ein mit auf dem eine so war von sich",
    "fr": "de la le et les des en un du une que est pour qui dans il je pas elle au ne sur vous",
    "es": "de la que el en y a los se del las un por con no una su para es lo como al más pero",
    "it": "di e il la che in un a per è una non si con del da sono le i lo della ma come nel",
    "pt": "de a o que e do da em um para com não uma os no se na por mais as dos como mas ao",
    "nl": "de het een en van ik in is dat niet te zijn je hij op met er aan ze die was maar",
    "sv": "och i att det som en på är av för den med inte han jag ett var hon till om men",
    "da": "og i at det er en den til af på for med ikke der han jeg var et hun som men de",
    "no": "og i det er som en på til av for at med ikke den han jeg var et hun de men har",
    "pl": "i w się nie na z do to że jest o jak a po co tak za ale od już go jej był",
    "cs": "a se na je v že to s z do o ve i k za by jako ale jsem po byl jeho už tak",
    "hu": "a az és hogy nem is egy ez de volt meg csak még már el mint van ki azt vagy",
    "fi": "ja on ei se että oli hän mutta kun niin ole en minä sen mitä nyt vain kuin jo",
    "ro": "de și în a la cu nu o pe un că din se să care mai pentru este ce am lui",
    "tr": "ve bir bu da de için ne o ben çok gibi ama var daha kadar her mi sonra en",
    "id": "yang dan di itu dengan untuk tidak ini dari dalam akan pada saya aku ke ada juga",
    "ru": "и в не на что я с он как это но а по к все она так его за был из у же",
    "uk": "і в не на що я з він як це але а до у та за його по вона так був від ще",
}
_OF_LETTERS = {  # languages that their letters alone tell
    "el": "\u0370-\u03ff",
    "he": "\u0590-\u05ff",
    "ar": "\u0600-\u06ff",
    "hi": "\u0900-\u097f",
    "th": "\u0e00-\u0e7f",
    "ko": "\uac00-\ud7af",
    "ja": "\u3040-\u30ff",
    "zh": "\u4e00-\u9fff",
}
_LEAST_OF_LETTERS = {"ja": 0.1}  # the others have half: Japanese has signs of Chinese too
_WORD = re.compile(r"[^\W\d_]+")


def language_of(text: str) -> str | None:
    """The code of the language in ISO 639-1, such as "en"; None if it is not one of those that are
    known, or the text is too short to tell."""
    sample = text[:_SAMPLE]
    letters = sum(map(str.isalpha, sample))
    for code in ("ja", *_OF_LETTERS):
        share = len(re.findall(f"[{_OF_LETTERS[code]}]", sample)) / max(letters, 1)
        if share > _LEAST_OF_LETTERS.get(code, 0.5):
            return code

    counts = Counter(_WORD.findall(sample.casefold()))
    known = {code: sum(counts[word] for word in words.split()) for code, words in _WORDS.items()}
    (code, most), (_, next_most) = Counter(known).most_common(2)
    is_clear = most >= _FEWEST_WORDS and most > _CLEARLY * next_most
    has_enough = most > 0.1 * counts.total()
    return code if is_clear and has_enough else None
