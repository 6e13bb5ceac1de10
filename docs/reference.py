"""Write docs/api: a reference of the package from its docstrings. Called by `make docs`."""

import pkgutil
import warnings
from pathlib import Path

import pdoc

import minigpt

for name in minigpt.__all__:  # they load when first used, which pdoc does not know
    setattr(minigpt, name, getattr(minigpt, name))
minigpt.__all__ += [room.name for room in pkgutil.iter_modules(minigpt.__path__)]
warnings.simplefilter("error")
pdoc.render.configure(docformat="google")
pdoc.pdoc("minigpt", output_directory=Path(__file__).parent / "api")
