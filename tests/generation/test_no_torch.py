"""What writes or looks at a text on a CPU never imports torch, which takes seconds."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    "code",
    [
        "import minigpt.cli as cli; cli.main(['generate', 'the fox', '--run', RUN, '--show'])",
        "import minigpt.cli as cli; cli.main(['generate', '--interactive', '--run', RUN])",
        "import minigpt.cli as cli; cli.main(['export', RUN, '--out', 'exported'])",
        "import minigpt.cli as cli; cli.main(['page', RUN, '--out', 'page.html'])",
        "import minigpt.cli as cli; cli.main(['runs', '--delete', 'nothing'])",
        "import minigpt; minigpt.load(RUN).generate('the fox', seed=1, samples=2, top_p=0.5)",
        "import minigpt; minigpt.attention_maps(minigpt.load(RUN), 'the fox')",
    ],
)
def test_torch_is_not_imported(code: str, tiny_run: Path, workplace: Path) -> None:
    check = f"import sys; RUN = {str(tiny_run)!r}; {code}; assert 'torch' not in sys.modules"
    command = [sys.executable, "-c", check]
    subprocess.run(command, check=True, input=b"the fox\n\n", stdout=subprocess.DEVNULL)
