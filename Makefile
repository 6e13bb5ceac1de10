# make demo: print a text of the base, train on data/tales.txt for about two minutes and print a
#   story or two.
# make test: lint, types and tests.
# make test-long, make test-distributed, make test-kill, make test-fuzz: the longer tests.
# make test-systems: all commands on an emulated Windows, and on a device that is not there.
# make test-gpu: the tests of a GPU; without one they are skipped.
# make test-types: what mypy and pyright see in a script that uses the package.
# make test-page: the page in Chromium, which it installs if apt and root are there.
# make test-studio: the studio with real trainings, and in Chromium if that is there.
# make test-loggers: trainings that also log to TensorBoard and Weights & Biases, offline.
# make test-serve: the server with its clients, and 5,000 requests.
# make test-lens: compares explanations with those of TransformerLens.
# make test-llama: runs what is exported as GGUF in llama.cpp.
# make test-notebooks: runs all notebooks.
# make test-wheel: builds the package and tries all commands of it in an environment of its own.
# make test-lowest: a part of the tests with the lowest versions that pyproject.toml allows.
# make docs: writes docs/api/, a reference of the package; a warning is an error.
# make lock: renews constraints.txt, the versions that all of these install.
# make bench, make bench-page: the measurements behind the figures of README and docs.
# The first call of any of them makes .venv and installs what is needed.

PYTHON ?= python3
MINUTES ?= 2
BIN := .venv/bin
SIZE := 1.5 GB
comma := ,

# Tests are compiled by the first target, and not again by each process of each other one.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-long test-distributed test-kill test-fuzz test-loggers test-serve test-lens test-llama test-notebooks test-types test-systems test-gpu \
	test-wheel test-lowest test-page test-studio chromium docs lock bench bench-page clean

define NEXT

Three things to try next:

  another beginning:
    $(BIN)/python generate.py "Once upon a time" --temperature 0.6

  see how it thinks: this writes a page to open in a browser
    $(BIN)/minigpt page

  a model of another text, five minutes; put a text of yours in its place
    $(BIN)/python train.py data/fables.txt
endef
export NEXT

demo: .venv/ready
	@$(BIN)/python generate.py "Once upon a time" --run base --seed 6 --temperature 0.5 \
		--max-new-tokens 80 --whole-sentences --wrap 80
	@echo
	@$(BIN)/python train.py --minutes $(MINUTES)
	@echo
	@$(BIN)/python generate.py "The old" --seed 7 --min-words 120 --whole-sentences --wrap 80
	@echo "$$NEXT"

test: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal

# The tests with a mark; only the files that have such tests are read.
marked = -m $(1) $$(grep -rl --include='*.py' 'mark\.$(1)\b' tests | sort)

test-long: .venv/ready
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal $(call marked,long)

test-distributed: .venv/ready
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 $(call marked,distributed)

test-kill: .venv/ready
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 $(call marked,kill)

test-fuzz: .venv/ready
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 $(call marked,fuzz)

test-systems: .venv/ready
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 $(call marked,systems)

test-gpu: .venv/ready
	$(BIN)/pytest -r s $(call marked,gpu)

test-loggers: .venv/loggers
	OMP_NUM_THREADS=1 $(BIN)/pytest $(call marked,loggers)

test-serve: .venv/serve
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MINIGPT_REQUESTS=5000 $(BIN)/pytest \
		-m 'serve or not serve' tests/serve/test_clients.py tests/serve/test_requests.py

test-lens: .venv/lens
	OMP_NUM_THREADS=1 $(BIN)/pytest $(call marked,lens)

test-llama: .venv/llama
	OMP_NUM_THREADS=1 $(BIN)/pytest $(call marked,llama_cpp)

test-notebooks: .venv/ready
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 $(call marked,notebooks)

test-types: .venv/page
	$(BIN)/pytest $(call marked,types)

test-wheel: .venv/wheel
	rm -rf dist
	$(BIN)/python -m build --quiet
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/bug.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	$(BIN)/pytest $(call marked,wheel)

# They use each package that pyproject.toml names. Old packages warn of newer ones that they use.
LOWEST := tests/tokenizer/test_foreign.py tests/data/test_batches.py tests/training/test_loggers.py \
	tests/generation/test_writer.py tests/serve/test_requests.py tests/interop/test_gguf.py \
	tests/interop/test_hub.py tests/cli/test_names.py \
	tests/data/documents/test_archive.py tests/data/documents/test_pdf.py \
	tests/cli/test_main.py::test_train_says_what_it_does_and_prints_the_result_alone

test-lowest: .venv/lowest/ready
	OMP_NUM_THREADS=1 PYTHONPATH="$(CURDIR)" .venv/lowest/bin/python -m pytest \
		-W ignore::DeprecationWarning -m 'long or not long' $(LOWEST)
	PYTHONPATH="$(CURDIR)" .venv/lowest/bin/python -m pytest -m notebooks \
		tests/test_notebooks.py -k test_a_cell_that_varies_must_assert_something

test-page: chromium .venv/page
	PATH="$(CURDIR)/$(BIN):$$PATH" node_modules/.bin/biome check
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile $(call marked,page)

# Without Chromium, what needs it is skipped. The browser has an event loop of its own, in which the
# other tests cannot run.
test-studio: .venv/page
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile -m studio tests/studio --ignore tests/studio/window
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile -m studio tests/studio/window

chromium:
	@chromium --version >/dev/null 2>&1 || (test "$$(id -u)" = 0 && command -v apt-get && \
		apt-get update -qq && apt-get install -qq -y chromium) >/dev/null || \
		{ echo "make test-page needs Chromium; on Debian: apt-get install chromium, as root"; exit 1; }

docs: .venv/ready
	$(BIN)/python docs/reference.py

# All extras, for Python 3.11 on Linux. The figures of the documentation were measured with this
# torch; it may be one for the CPU alone, and so its packages for CUDA are left out.
TORCH := torch==2.13.0

lock:
	$(PYTHON) -m venv .venv/lock
	.venv/lock/bin/pip install --quiet uv
	echo $(TORCH) | .venv/lock/bin/uv pip compile - pyproject.toml --all-extras --quiet --no-header \
		--no-annotate --python-version 3.11 --python-platform linux --output-file .venv/lock/all.txt
	echo "# All packages of the development set-up; \`make lock\` writes this file, and renews it." \
		>constraints.txt
	grep -vE '^(cuda|nvidia|triton)' .venv/lock/all.txt >>constraints.txt

bench: .venv/ready .venv/serve
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/plan_repeats.py
	$(BIN)/python benchmarks/generation.py
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/journal.py
	$(BIN)/python benchmarks/big_text.py
	$(BIN)/python benchmarks/serving.py
	OMP_NUM_THREADS=1 $(BIN)/torchrun --nproc-per-node 2 benchmarks/distributed.py

bench-page: chromium .venv/page
	$(BIN)/python benchmarks/page.py

clean:
	rm -rf .venv docs/api .mypy_cache .pytest_cache .ruff_cache .hypothesis *.egg-info node_modules

# Install the package with these extras: a dot every three seconds, and what pip said last if it
# fails. The rest of it is of no use to who installs. Ctrl-C ends pip too.
install = $(BIN)/pip install --disable-pip-version-check --progress-bar off \
		--constraint constraints.txt --editable '.[$(1)]' >.venv/install.log 2>&1 & pip=$$!; \
	trap 'kill $$pip; exit 130' INT TERM; \
	while kill -0 $$pip 2>/dev/null; do printf .; sleep 3; done; \
	echo; \
	wait $$pip || { tail -n 20 .venv/install.log; \
		echo "pip could not install what is needed; .venv/install.log has all that it said"; exit 1; }

.venv/ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "minigpt needs Python 3.11 or newer: make PYTHON=python3.12, say"; exit 1; }
	@echo "installing into .venv: about $(SIZE), a few minutes"
	@$(PYTHON) -m venv .venv
	@$(call install,dev)
	@touch $@

.venv/page: .venv/ready
	@echo "installing what tests the page and the types into .venv"
	@$(call install,dev-page)
	PATH="$(CURDIR)/$(BIN):$$PATH" npm install --no-save --silent \
		axe-core@4.14 @biomejs/biome@2.6 pyright@1.1
	touch $@

.venv/wheel: .venv/ready
	@echo "installing what builds and checks a release into .venv"
	@$(call install,dev-wheel)
	@touch $@

.venv/loggers: .venv/ready
	@echo "installing TensorBoard and Weights & Biases into .venv"
	@$(call install,tensorboard$(comma)wandb)
	@touch $@

.venv/serve: .venv/ready
	@echo "installing the clients that test the server into .venv"
	@$(call install,dev-serve)
	@touch $@

.venv/lens: .venv/ready
	@echo "installing TransformerLens into .venv"
	@$(call install,dev-lens)
	@touch $@

.venv/llama: .venv/ready
	@echo "installing llama.cpp into .venv"
	@$(call install,dev-llama)
	@touch $@

.venv/lowest/ready: pyproject.toml constraints.txt tests/lowest.py
	@echo "installing the lowest versions that are allowed into .venv/lowest"
	$(PYTHON) -m venv .venv/lowest
	$(PYTHON) -m tests.lowest >.venv/lowest/requirements.txt
	grep '^torch==' constraints.txt >.venv/lowest/constraints.txt
	.venv/lowest/bin/pip install --quiet --disable-pip-version-check --no-compile \
		--constraint .venv/lowest/constraints.txt --requirement .venv/lowest/requirements.txt
	touch $@
