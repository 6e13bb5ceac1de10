"""The parts that a network can be made of: its norms (`norms.py`) and positions (`positions.py`).

Each is one class, which knows its parameters, its form in torch and in numpy, and what other
programs call it. Who adds one writes its class, enters it in the table at the end of that file and
by its name below, and teaches it to the engine of the page, `page/model/engine.js`.
"""

from typing import Literal

NormName = Literal["rms", "layer"]
PositionsName = Literal["rotary", "learned"]
