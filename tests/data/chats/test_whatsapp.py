"""WhatsApp's exports as phones in many countries write them, and texts that only look like one."""

from datetime import datetime
from pathlib import Path

import pytest

from minigpt.data.readers.chats import whatsapp
from minigpt.data.readers.chats.turns import Message, conversations
from minigpt.data.readers.document import Turn

from ..readers.reading import report_of
from ..texts import write


def read(text: str) -> list[Message]:
    assert whatsapp.is_chat(text)
    (messages,) = whatsapp.exports(text)
    return [message for message in messages if message.text]


def kind_of(text: str, folder: Path) -> str:
    """The kind of a file that holds a text."""
    return report_of(write(folder / "chat.txt", text)).kind


GERMAN = """\
31.12.23, 21:40 - Nachrichten und Anrufe sind Ende-zu-Ende-verschlüsselt. Niemand kann sie lesen.
31.12.23, 21:41 - Anna: Hast du die Katze gefüttert?
31.12.23, 21:43 - Otto Müller: Zweimal.
Sie wollte mehr.
31.12.23, 21:43 - Otto Müller: <Medien ausgeschlossen>
31.12.23, 21:44 - Anna: Diese Nachricht wurde gelöscht.
31.12.23, 21:44 - Otto Müller hat die Gruppe „Katze" erstellt
31.12.23, 21:45 - Anna: Gut: dann bis morgen <Diese Nachricht wurde bearbeitet.>
01.01.24, 10:02 - Anna: Frohes Neues!
01.01.24, 10:03 - Otto Müller: IMG-20240101-WA0001.jpg (Datei angehängt)
Unsere Katze
"""


def test_a_german_chat_of_android_is_read_without_what_the_program_writes() -> None:
    assert read(GERMAN) == [
        Message("Anna", "Hast du die Katze gefüttert?", datetime(2023, 12, 31, 21, 41)),
        Message("Otto Müller", "Zweimal.\nSie wollte mehr.", datetime(2023, 12, 31, 21, 43)),
        Message("Anna", "Gut: dann bis morgen", datetime(2023, 12, 31, 21, 45)),
        Message("Anna", "Frohes Neues!", datetime(2024, 1, 1, 10, 2)),
        Message("Otto Müller", "Unsere Katze", datetime(2024, 1, 1, 10, 3)),
    ]


def test_hours_of_silence_end_a_conversation_and_messages_in_a_row_are_one_turn() -> None:
    first, second = conversations(read(GERMAN), silence=8)
    assert first == [
        Turn("Anna", "Hast du die Katze gefüttert?"),
        Turn("Otto Müller", "Zweimal.\nSie wollte mehr."),
        Turn("Anna", "Gut: dann bis morgen"),
    ]
    assert second == [Turn("Anna", "Frohes Neues!"), Turn("Otto Müller", "Unsere Katze")]
    assert len(list(conversations(read(GERMAN), silence=24))) == 1


def test_a_chat_of_ios_is_read_without_what_the_program_marks_as_its_own() -> None:
    text = """\
[12/31/23, 9:40:05\u202fPM] The Cats: \u200eMessages and calls are end-to-end encrypted.
[12/31/23, 9:41:05\u202fPM] Anna: Did you feed the cat?
\u200e[12/31/23, 9:41:30\u202fPM] Otto: \u200eimage omitted
[12/31/23, 9:42:00\u202fPM] Otto: Twice \u200e<This message was edited>
[12/31/23, 9:43:00\u202fPM] \u202a+49 170 1234567\u202c: \u200eThis message was deleted.
[12/31/23, 11:58:00\u202fPM] Anna: Thank you.

Good night!
[1/1/24, 12:05:00\u202fAM] Otto: Happy new year!
"""
    assert read(text) == [
        Message("Anna", "Did you feed the cat?", datetime(2023, 12, 31, 21, 41, 5)),
        Message("Otto", "Twice", datetime(2023, 12, 31, 21, 42)),
        Message("Anna", "Thank you.\n\nGood night!", datetime(2023, 12, 31, 23, 58)),
        Message("Otto", "Happy new year!", datetime(2024, 1, 1, 0, 5)),
    ]


@pytest.mark.parametrize(
    ("country", "line", "moment"),
    [
        ("Britain", "31/12/2023, 21:41 - {}", datetime(2023, 12, 31, 21, 41)),
        ("the United States", "12/31/23, 9:41 PM - {}", datetime(2023, 12, 31, 21, 41)),
        ("India", "31/12/23, 9:41 pm - {}", datetime(2023, 12, 31, 21, 41)),
        ("Spain", "31/12/23, 21:41 - {}", datetime(2023, 12, 31, 21, 41)),
        ("Mexico", "31/12/23, 9:41 p.\u00a0m. - {}", datetime(2023, 12, 31, 21, 41)),
        ("France", "31/12/2023 à 21:41 - {}", datetime(2023, 12, 31, 21, 41)),
        ("Brazil", "31/12/2023 21:41 - {}", datetime(2023, 12, 31, 21, 41)),
        ("the Netherlands", "31-12-2023 21:41 - {}", datetime(2023, 12, 31, 21, 41)),
        ("Sweden", "2023-12-31 21:41 - {}", datetime(2023, 12, 31, 21, 41)),
        ("Finland", "31.12.2023 klo 21.41 - {}", datetime(2023, 12, 31, 21, 41)),
        ("Hungary", "2023. 12. 31. 21:41 - {}", datetime(2023, 12, 31, 21, 41)),
        ("Japan", "2023/12/31 21:41 - {}", datetime(2023, 12, 31, 21, 41)),
        ("China", "2023/12/31 下午9:41 - {}", datetime(2023, 12, 31, 21, 41)),
        ("Egypt", "٣١/١٢/٢٠٢٣، ٩:٤١ م - {}", datetime(2023, 12, 31, 21, 41)),
        ("Korea", "2023년 12월 31일 오후 9:41, {}", datetime(2023, 12, 31, 21, 41)),
        ("iOS in Germany", "[31.12.23, 21:41:05] {}", datetime(2023, 12, 31, 21, 41, 5)),
        ("iOS in Italy", "[31/12/23, 21:41:05] {}", datetime(2023, 12, 31, 21, 41, 5)),
        ("iOS in China", "[2023/12/31 下午9:41:05] {}", datetime(2023, 12, 31, 21, 41, 5)),
    ],
)
def test_the_date_of_a_country_is_understood(country: str, line: str, moment: datetime) -> None:
    said = ["Anna: one", "Otto: two: three", "Anna: four", "Otto: five"]
    text = "\n".join(line.format(each) for each in said) + "\n"
    found = read(text)
    assert [(name, written) for name, written, _ in found] == [
        ("Anna", "one"),
        ("Otto", "two: three"),
        ("Anna", "four"),
        ("Otto", "five"),
    ]
    assert {time for _, _, time in found} == {moment}, country


def test_a_date_that_could_be_either_is_read_so_that_time_goes_on() -> None:
    days = ["1/2/24", "2/2/24", "3/2/24", "4/2/24", "1/3/24"]  # of February, then the 1st of March
    names = ["Anna", "Otto", "Anna", "Otto", "Anna"]
    text = "\n".join(f"{day}, 9:00 - {name}: hi" for day, name in zip(days, names, strict=True))
    assert [message.time.month for message in read(text) if message.time] == [2, 2, 2, 2, 3]


def test_noon_has_a_word_of_its_own_in_chinese() -> None:
    text = """\
2023/12/31 上午12:05 - Anna: one
2023/12/31 上午9:41 - Otto: two
2023/12/31 中午12:30 - Anna: three
2023/12/31 下午1:05 - Otto: four
"""
    times = [(time.hour, time.minute) for _, _, time in read(text) if time is not None]
    assert times == [(0, 5), (9, 41), (12, 30), (13, 5)]


def test_what_lost_its_invisible_marks_is_left_out_too() -> None:
    text = """\
2/9/21, 7:26 pm - Messages and calls are end-to-end encrypted. Tap to learn more.
2/9/21, 7:26 pm - ~\u202fK: Kainat here
2/9/21, 7:27 pm - Tayaba Student: image omitted
2/9/21, 7:27 pm - Tayaba Student: Bild weggelassen
2/9/21, 7:28 pm - Tayaba Student: Yes teacher
2/9/21, 7:28 pm - ~\u202fK: W. Aslam
Do download
"""
    assert [(name, said) for name, said, _ in read(text)] == [
        ("K", "Kainat here"),
        ("Tayaba Student", "Yes teacher"),
        ("K", "W. Aslam\nDo download"),
    ]


def test_a_short_chat_is_known_by_what_the_program_begins_it_with(tmp_path: Path) -> None:
    text = """\
[24/09/2026, 10:30:00] As Gatas: As mensagens são protegidas com a criptografia de ponta a ponta.
[24/09/2026, 10:35:12] Maria: Bom dia!
[24/09/2026, 10:36:40] Ana: Bom dia
[24/09/2026, 10:37:00] Ana mudou o nome para "Festa: sábado"
[24/09/2026, 10:38:00] Rui: É ponta a ponta?
"""
    assert whatsapp.is_chat(text) and kind_of(text, tmp_path) == "WhatsApp chat"
    assert [(name, said) for name, said, _ in read(text)] == [
        ("Maria", "Bom dia!"),
        ("Ana", "Bom dia"),
        ("Rui", "É ponta a ponta?"),
    ]
    assert not whatsapp.is_chat(text.replace("ponta a ponta", "todos"))


def test_a_chat_of_signal_in_markdown_is_read(tmp_path: Path) -> None:
    text = """\
[2019-05-29, 15:04] Me: How is everyone?
[2019-05-29, 15:10] Aya: We're great!  (- Me: 👍 -)
[2019-05-29, 15:20] Jim: I'm good.
[2019-05-29, 15:21] Aya: ![photo](./media/1.jpg)
[2019-05-29, 15:22] Me: Good
"""
    assert kind_of(text, tmp_path) == "Signal chat"
    assert [(name, said) for name, said, _ in read(text)] == [
        ("Me", "How is everyone?"),
        ("Aya", "We're great!"),
        ("Jim", "I'm good."),
        ("Me", "Good"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        # Logs
        "2023-12-31 21:41 - INFO: started\n2023-12-31 21:42 - ERROR: broken\n" * 20,
        "[2023-12-31 21:41:05] production.ERROR: broken\n"
        "[2023-12-31 21:41:06] production.INFO: it goes on\n" * 20,
        "[2023-12-31 21:41:05] sshd[212]: opened\n[2023-12-31 21:41:06] cron[9]: done\n" * 20,
        "2023-12-31 21:41:05,123 - root - INFO - started\n" * 20,
        # Diaries
        "31.12.2023, 21:41 - Heute war ich am See.\nEs war kalt.\n1.1.2024, 9:00 - Frost: -3 °.\n"
        "2.1.2024, 8:00 - Nichts.\n",
        "".join(f"{day}.1.2024, 9:00 - Thema {day}: es regnet\n" for day in range(1, 29)),
        # A calendar
        "01/02/2024, 09:00 - Dentist\n01/03/2024, 10:00 - Lunch with Otto\n" * 10,
    ],
)
def test_a_log_a_diary_and_a_calendar_are_no_chats(text: str) -> None:
    assert not whatsapp.is_chat(text)


SAID = ["Anna: one", "Otto: two: three", "Anna: four", "Otto: five"]


@pytest.mark.parametrize(
    "line",
    [
        "2023-12-31 21 h 41 - {}",
        "2023-12-31 à 21 h 41 - {}",
        "31.12.23, 21:41:43 - {}",
        "31/12/23, 9:41 अपराह्न - {}",
        "12/31/23, 9:41:59 PM: {}",
        "[31/12/2023, 9:41:09\u2009PM] {}",
        "[31/12/2023, 9:41:09\u202fp. m.] {}",
        "21:41, 31/12/2023 - {}",
        "[21:41, 31/12/2023] {}",
        "[9:41 PM, 12/31/2023] {}",
        "31\u200f/12\u200f/2023, 9:41 م - {}",
        "\u200e[31\u200f/12\u200f/2023, 9:41:05 م] {}",
        "31.12.23 г., 21:41 ч. - {}",
        "31. 12. 2023. 21:41 - {}",
        "31. 12. 2023 v 21:41 - {}",
        "31/12/2023 21.41 - {}",
        "31/12/23 21.41.05 - {}",
        "2023年12月31日 21:41 - {}",
        "2023. 12. 31. 오후 9:41, {}",
        "[2023. 12. 31. 오후 9:41:05] {}",
        "[2023/12/31, 21:41:05] {}",
        "31/12/2566 21:41 - {}",
        "31/12/23, 9:41 μ.μ. - {}",
        "31/12/23, 9:41\u00a0e paradites - {}",
        "31/12/23, ප.ව. 9:41 - {}",
        "31-12-23 21:41 – {}",
        "[31-12-23 21:41:05] {}",
        "31/12/23, 21:41 Uhr - {}",
    ],
)
def test_any_order_separator_space_and_word_around_date_and_time_is_understood(
    line: str, tmp_path: Path
) -> None:
    text = "\n".join(line.format(said) for said in SAID) + "\n"
    assert [f"{name}: {said}" for name, said, _ in read(text)] == SAID
    assert kind_of(text, tmp_path) == "WhatsApp chat"


def test_two_forms_in_a_file_are_two_exports() -> None:
    text = "".join(f"2/12/23, 21:4{n} - {said}\n" for n, said in enumerate(SAID))
    text += "".join(f"[3/13/24, 9:4{n}:05 PM] {said}\n" for n, said in enumerate(SAID))
    assert whatsapp.is_chat(text)
    first, second = map(list, whatsapp.exports(text))
    assert [f"{name}: {said}" for name, said, _ in first] == SAID
    assert [f"{name}: {said}" for name, said, _ in second] == SAID
    assert {time.month for _, _, time in first if time} == {12}
    assert {time.month for _, _, time in second if time} == {3}


def test_a_word_for_a_half_of_the_day_is_learned_from_the_order_of_the_messages() -> None:
    times = ["9:00 foo", "11:00 foo", "1:00 bar", "12:10 bar", "8:00 bar"]
    times[2], times[3] = times[3], times[2]  # noon comes first
    names = ["Anna", "Otto", "Anna", "Otto", "Anna"]
    text = "".join(
        f"31/12/23, {time} - {name}: hi\n" for time, name in zip(times, names, strict=True)
    )
    assert [time.hour for _, _, time in read(text) if time] == [9, 11, 12, 13, 20]


def test_a_list_of_dates_in_a_message_belongs_to_it() -> None:
    text = (
        GERMAN + "01.01.24, 10:04 - Anna: I come on\n2/1/24, 9:00 - bus: 12\n3/1/24, 9:00 - train\n"
    )
    assert read(text)[-1].text == "I come on\n2/1/24, 9:00 - bus: 12\n3/1/24, 9:00 - train"


@pytest.mark.parametrize(
    "line",
    [
        "This message was deleted by admin ~Bola.",
        "You deleted this message as admin",
        "Waiting for this message. This may take a while.",
        "<View once voice message omitted>",
        "You received a view once message. For added privacy, you can only open it on your phone.",
        "Missed group voice call",
        "Missed voice call, Tap to call back",
        "location: https://maps.google.com/?q=52.1,13.2",
        "Location: 52.1, 13.2 - https://maps.google.com/?q=52.1,13.2",
        "live location shared",
        "POLL:\nPizza or soup?\nOPTION: Pizza (2 votes)\n",
        "Poll: Which food?\n    - Fish",
        "Carl Smith.vcf (file attached)",
        "[Forwarded] Ten facts",
        "[Forwarded many times] Send this to ten friends",
        "GIF attached",
        "Contact: Carl",
        "3 contacts shared",
        "null",
    ],
)
def test_what_the_program_writes_for_a_message_is_left_out_and_counted(line: str) -> None:
    text = "".join(f"1/4/26, 19:02 - {said}\n" for said in [*SAID, f"Anna: {line}", "Anna: bye"])
    assert whatsapp.is_chat(text)
    (messages,) = map(list, whatsapp.exports(text))
    assert [message.text for message in messages][4:] == ["", "bye"]


def test_what_a_person_writes_beside_a_picture_stays() -> None:
    said = ["<image omitted> this is her", "cat.jpg (file attached) and this is him"]
    text = "".join(f"[1/4/26, 7:02:05 PM] {line}\n" for line in SAID)
    text += "".join(f"[1/4/26, 7:03:05 PM] Otto: {line}\n" for line in said)
    assert [message.text for message in read(text)][4:] == ["this is her", "and this is him"]


def test_a_chat_in_markdown_has_its_days_in_headings() -> None:
    text = """\
# WhatsApp Chat Export: Otto

---

## January 4, 2026

[7:02 PM] **You:** Did you feed the cat?

[7:03 PM] **Otto:** Twice

[7:07 PM] **You:**
> **Otto:** Twice
Good

---

## January 5, 2026

[8:02 AM] **Otto:** Bye
"""
    found = read(text)
    assert [(name, said.strip()) for name, said, _ in found] == [
        ("You", "Did you feed the cat?"), ("Otto", "Twice"), ("You", "Good"), ("Otto", "Bye"),
    ]  # fmt: skip
    assert len(list(conversations(found, silence=8))) == 2


def test_a_text_that_looks_like_a_chat_of_another_form_says_so(tmp_path: Path) -> None:
    chat = tmp_path / "chat.txt"
    chat.write_text("".join(f"Dec 31, 2023 9:41 PM | {said}\n" for said in SAID))
    assert any("looks like a chat" in note for note in report_of(chat).notes)
    log = tmp_path / "log.txt"
    log.write_text("Dec 31 2023 21:41:05 | ERROR: broken\nDec 31 2023 21:41:05 | INFO: on\n" * 9)
    assert not report_of(log).notes
