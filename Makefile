# make demo: train on data/tales.txt for about two minutes and print generated text.
# make test: lint, types and tests.
# make test-distributed, make test-kill, make test-fuzz: the long tests.
# make test-page: the page in chromium; it installs chromium where apt is there, and needs npm.
# make bench: the measurements behind the figures of README and docs.
# The first call of any of them makes .venv and installs what is needed.

PYTHON ?= python3
MINUTES ?= 2
BIN := .venv/bin

.PHONY: demo test test-distributed test-kill test-fuzz test-page bench clean

demo: .venv/ready
	$(BIN)/python train.py --minutes $(MINUTES)
	$(BIN)/python generate.py "The old" --seed 7

test: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal

test-distributed: .venv/ready
	OMP_NUM_THREADS=1 $(BIN)/pytest -m distributed

test-kill: .venv/ready
	OMP_NUM_THREADS=1 $(BIN)/pytest -m kill

test-fuzz: .venv/ready
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 -m fuzz

test-page: .venv/ready
	command -v chromium chromium-browser || apt-get install -y chromium || \
		(echo "install chromium first: it runs the pages"; exit 1)
	npm install --no-save --silent axe-core@4.14 @biomejs/biome@2.6 || \
		(echo "install Node.js first: npm fetches axe-core and biome"; exit 1)
	node_modules/.bin/biome check
	$(BIN)/pytest -m page

bench: .venv/ready
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/generation.py
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/big_text.py
	$(BIN)/python benchmarks/page.py
	OMP_NUM_THREADS=1 $(BIN)/torchrun --nproc-per-node 2 benchmarks/distributed.py

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis *.egg-info

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@
