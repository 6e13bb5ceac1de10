"""How other programs talk with a model that learned from conversations: a Jinja template for
transformers, vLLM and llama.cpp, and a Modelfile for Ollama.

Both write what `Dialogue.write` does. Where the tokenizer has tokens for the beginning and the end
of a turn these are written out; otherwise a turn ends as it does in the text.
"""

import json

from ..config import PLAIN, SampleConfig
from ..data.dialogue import MANNER, Dialogue
from ..data.readers.document import invisible_characters
from ..tokenizer import END_OF_TURN, NAMES_AS_TEXT, SPEAKER, Tokenizer

_LINE_ENDS = "\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"  # beside \n


class ChatFormat:
    """How the turns of a model's conversations are written for other programs."""

    def __init__(self, dialogue: Dialogue, tokenizer: Tokenizer, answerer: str | None = None):
        self.dialogue = dialogue
        self.has_tokens = tokenizer.speaker is not None
        self.roles = dialogue.roles(answerer)  # a message of another role is left out
        self.answerer = self.roles["assistant"]
        self.asker = self.roles["user"]

    @property
    def end_of_turn(self) -> str:
        """What ends a turn."""
        return END_OF_TURN if self.has_tokens else self.dialogue.end

    @property
    def stops(self) -> tuple[str, ...]:
        """Where an answer stops."""
        return (END_OF_TURN,) if self.has_tokens else self.dialogue.stops

    @property
    def before_text(self) -> str:
        """What goes before the text of a turn, with {speaker} as the name."""
        token = SPEAKER if self.has_tokens else ""
        return token + self.dialogue.before_text

    def opening(self, speaker: str) -> str:
        """What the answer of a speaker begins with."""
        token = SPEAKER if self.has_tokens else ""
        return token + self.dialogue.opening(speaker)

    def jinja(self) -> str:
        """The chat template, for which a message may also have the name of a speaker. It reads a
        message as the server does: a content may be null, or a list of parts, and the name of a
        special token in it is ordinary text."""
        roles = ", ".join(f"{_quoted(role)}: {_quoted(name)}" for role, name in self.roles.items())
        before, _, after = self.before_text.partition("{speaker}")
        between_lines = _quoted(self.dialogue.between_lines)
        names = ", ".join(_quoted(name) for name in self.dialogue.speakers)
        replaced = [(character, "") for character in invisible_characters()]
        replaced += [(line_end, "\n") for line_end in _LINE_ENDS]
        replaced += NAMES_AS_TEXT.items()
        pairs = ", ".join(f"[{_quoted(old)}, {_quoted(new)}]" for old, new in replaced)

        return (
            f"{{%- set roles = {{{roles}}} -%}}"
            f"{{%- set speakers = [{names}] -%}}"
            f"{{%- set replaced = [{pairs}] -%}}"
            "{%- for message in messages -%}"
            "{%- if message['name'] is defined and message['name'] in speakers -%}"
            "{%- set speaker = message['name'] -%}"
            "{%- else -%}"
            "{%- set speaker = roles.get(message['role'], '') -%}"
            "{%- endif -%}"
            "{%- set said = namespace(text='') -%}"
            "{%- if message['content'] is string -%}"
            "{%- set said.text = message['content'] -%}"
            "{%- elif message['content'] -%}"
            "{%- for part in message['content'] -%}"
            "{%- set said.text = said.text + (part['text'] or '') -%}"
            "{%- endfor -%}"
            "{%- endif -%}"
            "{%- for pair in replaced -%}"
            "{%- set said.text = said.text | replace(pair[0], pair[1]) -%}"
            "{%- endfor -%}"
            "{%- set lines = said.text.split('\\n') | map('trim') | select | list -%}"
            "{%- if speaker and lines -%}"
            f"{{{{ {_quoted(before)} + speaker + {_quoted(after)} + lines | join({between_lines})"
            f" + {_quoted(self.end_of_turn)} }}}}"
            "{%- endif -%}"
            "{%- endfor -%}"
            "{%- if add_generation_prompt -%}"
            f"{{{{ {_quoted(self.opening(self.answerer))} }}}}"
            "{%- endif -%}"
        )

    def modelfile(self, file: str, context_length: int, usual: SampleConfig = PLAIN) -> str:
        """An Ollama Modelfile for the GGUF file of this name. Ollama samples as is `usual` with the
        model, but has nothing like the penalty on repeated passages."""
        turns: list[str] = []
        for role, speaker in self.roles.items():
            condition = "if" if not turns else "else if"
            before = _in_go(self.before_text.replace("{speaker}", speaker))
            turn = f"{before}{{{{ .Content }}}}{_in_go(self.end_of_turn)}"
            turns.append(f'{{{{ {condition} eq .Role "{role}" }}}}{turn}')

        # Ollama knows no escapes between quotes: a line end is written as one.
        stops = "".join(f'PARAMETER stop """{stop}"""\n' for stop in self.stops)
        return (
            f"# It answers as {self.answerer}: {MANNER}.\n"
            f"FROM ./{file}\n"
            f'TEMPLATE """{{{{ range .Messages }}}}{"".join(turns)}{{{{ end }}}}{{{{ end }}}}'
            f'{_in_go(self.opening(self.answerer))}"""\n'
            f"{stops}"
            f"PARAMETER temperature {usual.temperature:g}\n"
            f"PARAMETER top_k {usual.top_k or 0}\n"  # Ollama's own defaults are 40, 0.9 and 1.1
            f"PARAMETER top_p {usual.top_p or 1:g}\n"
            f"PARAMETER min_p {usual.min_p or 0:g}\n"
            f"PARAMETER repeat_penalty {usual.repetition_penalty:g}\n"
            f"PARAMETER presence_penalty {usual.presence_penalty:g}\n"
            f"PARAMETER frequency_penalty {usual.frequency_penalty:g}\n"
            f"PARAMETER repeat_last_n {context_length}\n"  # for penalties; Ollama's own is 64
            f"PARAMETER num_ctx {context_length}\n"
        )


def _in_go(text: str) -> str:
    """A text as it is written in a template of Go between the quotes of a Modelfile."""
    is_plain = not {"{", '"'} & {*text}
    return text if is_plain else f"{{{{ {json.dumps(text, ensure_ascii=False)} }}}}"


def _quoted(text: str) -> str:
    """A text as Jinja reads it."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    escaped = escaped.replace("\r", "\\r")
    return f"'{escaped}'"
