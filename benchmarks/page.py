"""The page in a browser: opening, tokens a second, explanations, attention, frames while it writes.

    python benchmarks/page.py          make bench-page installs what it needs

Models with random weights of 1 and 12 million parameters; each figure is the median of several
rounds. They go to benchmarks/results/page.json too.
"""

import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from measuring import chromium_place

from minigpt.config import GPTConfig, named_shapes
from minigpt.generation.numpy_gpt import NumpyGPT
from minigpt.page.build import build_page
from minigpt.runs.read_model import FoundModel
from minigpt.tokenizer import CharacterTokenizer

RESULTS = Path(__file__).parent / "results"
SHAPES = {
    "1.07 M": {"emb_dim": 128, "num_layers": 4, "num_heads": 2},
    "11.4 M": {"emb_dim": 384, "num_layers": 6, "num_heads": 6},
}
ROUNDS = 5
OPENING = "minigpt.ready.then(() => performance.now())"  # since the page was asked for
WRITE = """async (seed) => {
  const start = performance.now();
  await minigpt.generate("a", {seed, maxNewTokens: 200});
  return 200 / (performance.now() - start) * 1000;
}"""
ATTENTION = """async () => {
  const start = performance.now();
  document.querySelector("#map [data-view=attention]").click();
  document.querySelector("#panel-attention details:has(.matrix)").open = true;
  const frame = () => new Promise(requestAnimationFrame);
  while (document.querySelector("#panel-attention .matrix canvas").width !== 256) await frame();
  await frame();
  return performance.now() - start;
}"""
EXPLANATION = """async () => {
  const ids = Array.from({ length: 101 }, (_, i) => (i * 7) % 2000);
  const start = performance.now();
  await minigpt.explain(ids, 100);
  return performance.now() - start;
}"""
FRAMES = """async () => {
  const buttons = [...document.querySelectorAll("button")];
  buttons.find((button) => button.textContent === "Write").click();
  let frames = 0;
  const start = performance.now();
  while (performance.now() - start < 1500) {
    await new Promise(requestAnimationFrame);
    frames++;
  }
  return frames / (performance.now() - start) * 1000;
}"""


def some_model(shape: dict[str, Any]) -> FoundModel:
    """A model with random weights and 2,048 tokens, each a character."""
    tokenizer = CharacterTokenizer(chr(0x4E00 + i) if i > 1 else "a\n"[i] for i in range(2047))
    config = GPTConfig(2048, **shape)
    random = np.random.default_rng(0)
    weights = {
        name: random.standard_normal(size, np.float32) / size[-1] ** 0.5
        for name, size in named_shapes(config)
    }
    weights["token_embedding.weight"][-1] = 0  # the end of the text is hardly ever drawn
    return FoundModel(Path(), NumpyGPT(config, weights), tokenizer)


def opened(browser: Any, found: FoundModel, folder: str, link: str = "") -> Any:
    file = Path(folder) / "page.html"
    file.write_text(build_page(found, "benchmark"), encoding="utf-8")
    page = browser.new_page(viewport={"width": 1600, "height": 1000})
    page.goto(f"{file.as_uri()}{link}")
    page.evaluate("minigpt.ready")
    return page


def main() -> None:
    from playwright.sync_api import sync_playwright

    figures = {}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium_place(), args=["--no-sandbox"]
        )
        for name, shape in SHAPES.items():
            page = opened(browser, some_model(shape), folder)
            times = []
            for _ in range(ROUNDS):
                page.reload()
                times.append(page.evaluate(OPENING))
            figures[f"opening, {name} parameters, ms"] = f"{statistics.median(times):.0f}"

            speeds = [page.evaluate(WRITE, seed) for seed in range(ROUNDS + 1)][1:]
            figures[f"writing, {name} parameters, tokens/s"] = f"{statistics.median(speeds):.0f}"
            if name == "1.07 M":
                times = [page.evaluate(EXPLANATION) for _ in range(ROUNDS)]
                figures["a whole explanation of token 100, ms"] = f"{statistics.median(times):.0f}"
            page.close()
        times = []
        for _ in range(ROUNDS):
            page = opened(browser, some_model(SHAPES["1.07 M"]), folder, f"#prompt={'a' * 256}")
            page.wait_for_timeout(1000)
            times.append(page.evaluate(ATTENTION))
            page.close()
        figures["attention of 256 tokens over 8 heads, ms"] = f"{statistics.median(times):.0f}"
        page = opened(browser, some_model(SHAPES["1.07 M"]), folder, "#prompt=a&maxNewTokens=2000")
        page.wait_for_timeout(300)
        figures["frames a second while it writes"] = f"{page.evaluate(FRAMES):.0f}"
        browser.close()

    for name, figure in figures.items():
        print(f"{name}: {figure}")
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "page.json").write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
