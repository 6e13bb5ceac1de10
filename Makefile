# make demo: train on data/tales.txt for about two minutes and print generated text.
# make test: lint, types and tests.
# make test-distributed, make test-kill, make test-fuzz: the long tests.
# make test-page: the page in Chromium, which it installs if apt and root are there.
# make test-serve: the server with its clients, and 20,000 requests.
# make test-notebooks: runs all notebooks.
# make docs: writes docs/api/, a reference of the package; a warning is an error.
# make bench, make bench-page: the measurements behind the figures of README and docs.
# The first call of any of them makes .venv and installs what is needed.

PYTHON ?= python3
MINUTES ?= 2
BIN := .venv/bin

.PHONY: demo test test-distributed test-kill test-fuzz test-serve test-notebooks test-page chromium \
	docs bench bench-page clean

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

test-serve: .venv/serve
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MINIGPT_REQUESTS=20000 $(BIN)/pytest tests/serve \
		-m 'serve or not serve'

test-notebooks: .venv/ready
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 -m notebooks

test-page: chromium .venv/page
	PATH="$(CURDIR)/$(BIN):$$PATH" node_modules/.bin/biome check
	$(BIN)/pytest -m page

chromium:
	@chromium --version >/dev/null 2>&1 || (test "$$(id -u)" = 0 && command -v apt-get && \
		apt-get update -qq && apt-get install -qq -y chromium) >/dev/null || \
		{ echo "make test-page needs Chromium; on Debian: apt-get install chromium, as root"; exit 1; }

docs: .venv/ready
	$(BIN)/python docs/reference.py

bench: .venv/ready .venv/serve
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/generation.py
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/big_text.py
	$(BIN)/python benchmarks/serving.py
	OMP_NUM_THREADS=1 $(BIN)/torchrun --nproc-per-node 2 benchmarks/distributed.py

bench-page: chromium .venv/page
	$(BIN)/python benchmarks/page.py

clean:
	rm -rf .venv docs/api .mypy_cache .pytest_cache .ruff_cache .hypothesis *.egg-info node_modules

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

.venv/page: .venv/ready
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev-page]'
	PATH="$(CURDIR)/$(BIN):$$PATH" npm install --no-save --silent axe-core@4.14 @biomejs/biome@2.6
	touch $@

.venv/serve: .venv/ready
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev-serve]'
	touch $@
