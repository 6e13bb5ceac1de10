"""How other programs write in a voice: a prompt begins with its mark, a line with its name. For
Ollama a Modelfile makes that line of the system prompt."""

from collections.abc import Sequence

from ..config import SampleConfig
from ..data.voices import list_names, mark_of


def voice_modelfile(
    file: str, voices: Sequence[str], context_length: int, usual: str | None = None
) -> str:
    """An Ollama Modelfile for the GGUF file of this name: the system prompt is the voice, if there
    is one; the `usual` one where none is given."""
    mark = mark_of("{{ .System }}")
    system = "" if usual is None else f'SYSTEM """{usual}"""\n'
    return (
        f"# The system prompt names the voice: {list_names(voices)}.\n"
        f"FROM ./{file}\n"
        f'TEMPLATE """{{{{ if .System }}}}{mark}{{{{ end }}}}{{{{ .Prompt }}}}"""\n'
        f"{system}"
        f"PARAMETER temperature {SampleConfig.temperature:g}\n"
        f"PARAMETER num_ctx {context_length}\n"
    )
