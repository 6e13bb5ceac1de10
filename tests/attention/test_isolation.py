"""The attention layer can be taken out of the package: it needs nothing but torch."""

import subprocess
import sys


def test_importing_attention_loads_nothing_but_torch() -> None:
    code = (
        "import sys, torch; before = set(sys.modules); import minigpt.attention\n"
        "new = set(sys.modules) - before\n"
        "assert {'.'.join(name.split('.')[:2]) for name in new} == "
        "{'minigpt', 'minigpt.attention'}, new"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
