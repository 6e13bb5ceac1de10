# make demo: print a few lines of the base, train on data/plays.txt for about two minutes and print
#   a scene.
# make test: lint, types and the short tests.
# make test-rest: all other tests, but those in a browser. Each kind of them has a target too:
#   test-long: longer tests of the same kinds as the short ones.
#   test-distributed: trainings of several processes.
#   test-kill: trainings that are killed, interrupted or damaged.
#   test-fuzz: thousands of damaged files.
#   test-systems: all commands on an emulated Windows, and on a device that is not there.
#   test-gpu: the tests of a GPU; without one they are skipped.
#   test-loggers: trainings that also log to TensorBoard and Weights & Biases, offline.
#   test-serve: the server with its clients, and 1,000 requests; MINIGPT_REQUESTS=5000 asks more.
#   test-lens: compares explanations with those of TransformerLens.
#   test-llama: runs what is exported as GGUF in llama.cpp.
#   test-notebooks: runs all notebooks.
#   test-types: what mypy and pyright see in a script that uses the package.
#   test-figures: what guards figures that change only when they are measured.
#   test-wheel: builds the package and tries all commands of it in an environment of its own.
# make test-browser: the page and the studio in Chromium, which it installs if apt and root are
#   there. Its parts are test-page and test-studio; the latter trains, too.
# make test-lowest: a part of the tests with the lowest versions that pyproject.toml allows.
# make docs: writes docs/api/, a reference of the package; a warning is an error.
# make lock: renews constraints.txt, the versions that all of these install.
# make bench, make bench-page: the measurements behind the figures of README and docs.
# make bench-gpu TEXTS=FOLDER: those of a GPU, in ten to thirteen minutes, the most important first;
#   with COPY=FOLDER they are kept there too. The folder has tinyshakespeare as shakespeare.txt.
# The first call of any of them makes .venv and installs what is needed.

PYTHON ?= python3
MINUTES ?= 2
BIN := .venv/bin
comma := ,

# Tests are compiled by the first target, and not again by each process of each other one.
unexport PYTHONDONTWRITEBYTECODE

KINDS := long distributed kill fuzz systems gpu loggers serve lens llama notebooks types figures

.PHONY: demo test $(addprefix test-,rest $(KINDS) wheel browser page studio lowest) dist chromium \
	docs lock bench bench-page bench-gpu clean

# How both scenes begin
define OPENING
TORELLO.
I love you, lady.

VERIDIANA.
Prove it, sir.

TORELLO.

endef
export OPENING

define NEXT

Three things to try next:

  talk with one of them:
    $(BIN)/python generate.py "TORELLO: I love you, lady." --as Veridiana

  see how it thinks: this writes a page to open in a browser
    $(BIN)/minigpt page

  a model of another text, five minutes; put a text of yours in its place
    $(BIN)/python train.py data/fables.txt
endef
export NEXT

demo: .venv/ready
	@$(BIN)/python generate.py "$$OPENING" --run base --seed 1 --max-new-tokens 60 \
		--whole-sentences --wrap 80
	@echo
	@$(BIN)/python train.py --minutes $(MINUTES)
	@echo
	@$(BIN)/python generate.py "$$OPENING" --plain --seed 1 --max-new-tokens 160 \
		--whole-sentences --wrap 80
	@echo "$$NEXT"

# Each of the two processes computes with one thread.
pytest := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2

# mypy runs beside the tests, and says after them what it found. No short test looks at a log, which
# pytest would set up anew for each. Files in which all tests have a mark are not read.
test: .venv/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	PATH="$(CURDIR)/$(BIN):$$PATH" node_modules/.bin/biome check
	@$(BIN)/mypy >.venv/mypy.log 2>&1 & mypy=$$!; \
	trap 'kill $$mypy' INT TERM; \
	$(pytest) --dist worksteal -p no:logging $$(grep -rlE --include='*.py' \
		'^pytestmark = .*mark\.($(subst $(space),|,$(KINDS) wheel page studio))\b' tests | \
		sed 's/^/--ignore=/'); tests=$$?; \
	wait $$mypy; types=$$?; \
	cat .venv/mypy.log; \
	exit $$((tests + types))

# The tests with one of these marks; only the files that have such tests are read. Those of a file
# share runs, pages and environments that take long to make, and so go to one process.
space := $(subst ,, )
marked = $(pytest) --dist loadfile --no-loadscope-reorder -m '$(subst $(space), or ,$(strip $(1)))' \
	$$(grep -rlE --include='*.py' 'mark\.($(subst $(space),|,$(strip $(1))))\b' $(2) | sort)

WITHOUT_BROWSER := --exclude-dir=window tests
test-rest: .venv/dev dist
	$(call marked,$(KINDS) wheel studio,$(WITHOUT_BROWSER))

$(addprefix test-,$(KINDS)): test-%: .venv/dev
	$(call marked,$*,tests)

test-wheel: .venv/dev dist
	$(call marked,wheel,tests)

# A browser has an event loop of its own, in which the other tests cannot run.
test-browser: .venv/dev chromium
	$(call marked,page studio,tests/page tests/studio/window)

test-page: .venv/dev chromium
	$(call marked,page,tests/page)

# Without Chromium, what needs it is skipped.
test-studio: .venv/dev
	$(call marked,studio,$(WITHOUT_BROWSER))
	$(call marked,studio,tests/studio/window)

dist: .venv/dev
	rm -rf dist
	$(BIN)/python -m build --quiet
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/bug.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff

# They use each package that pyproject.toml names. Old packages warn of newer ones that they use.
LOWEST := tests/tokenizer/test_foreign.py tests/data/test_batches.py tests/training/test_loggers.py \
	tests/generation/test_writer.py tests/serve/test_requests.py tests/interop/test_gguf.py \
	tests/interop/test_hub.py tests/cli/test_names.py \
	tests/data/readers/test_archive.py tests/data/readers/test_pdf.py \
	tests/cli/test_main.py::test_train_says_what_it_does_and_prints_the_result_alone

test-lowest: .venv/lowest/ready
	OMP_NUM_THREADS=1 PYTHONPATH="$(CURDIR)" .venv/lowest/bin/python -m pytest \
		-W ignore::DeprecationWarning -m 'long or not long' $(LOWEST)
	PYTHONPATH="$(CURDIR)" .venv/lowest/bin/python -m pytest -m notebooks \
		tests/test_notebooks.py -k test_a_cell_that_varies_must_assert_something

# Chromium's shell without a screen opens pages in a third of the time that Chromium itself takes.
chromium:
	@chromium-headless-shell --version >/dev/null 2>&1 || (test "$$(id -u)" = 0 && \
		apt-get update -qq && apt-get install -qq -y chromium-headless-shell) >/dev/null 2>&1 || \
		chromium --version >/dev/null 2>&1 || { echo "make test-browser needs Chromium;" \
		"on Debian: apt-get install chromium-headless-shell, as root"; exit 1; }

docs: .venv/dev
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

bench: .venv/dev
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/plan_repeats.py
	$(BIN)/python benchmarks/generation.py
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/journal.py
	$(BIN)/python benchmarks/big_text.py
	$(BIN)/python benchmarks/serving.py
	OMP_NUM_THREADS=1 $(BIN)/torchrun --nproc-per-node 2 benchmarks/distributed.py

bench-page: chromium .venv/dev
	$(BIN)/python benchmarks/page.py

# By the environment here or, where there is none, by a Python that has all that is needed: a machine
# with a GPU may be lent for minutes, and reach nothing.
bench-gpu:
	PYTHONPATH="$(CURDIR)" $(or $(wildcard $(BIN)/python),$(PYTHON)) \
		benchmarks/results.py --measure gpu --texts $(TEXTS) \
		$(if $(COPY),--copy $(COPY))

clean:
	rm -rf .venv docs/api .mypy_cache .pytest_cache .ruff_cache .hypothesis *.egg-info node_modules

# Install the package with these extras, and with other options of pip: a dot every three seconds,
# and what pip said last if it fails. The rest of it is of no use to who installs. Ctrl-C ends pip too.
install = $(BIN)/pip install --disable-pip-version-check --progress-bar off \
		--constraint constraints.txt $(2) --editable '.[$(1)]' >.venv/install.log 2>&1 & pip=$$!; \
	trap 'kill $$pip; exit 130' INT TERM; \
	while kill -0 $$pip 2>/dev/null; do printf .; sleep 3; done; \
	echo; \
	wait $$pip || { tail -n 20 .venv/install.log; \
		echo "pip could not install what is needed; .venv/install.log has all that it said"; exit 1; }

.venv/made: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "minigpt needs Python 3.11 or newer: make PYTHON=python3.12, say"; exit 1; }
	@$(PYTHON) -m venv .venv
	@touch $@

# What a user needs
.venv/ready: .venv/made
	@echo "installing into .venv: about 1.2 GB, or several more with PyTorch for NVIDIA GPUs, a few minutes"
	@$(call install,pictures$(comma)studio)
	@touch $@

# What all tests need, at once: pip looks at every package each time that it is called. Of it only
# that is compiled which is imported.
EXTRAS := dev dev-lens dev-llama dev-page dev-serve dev-wheel tensorboard wandb
.venv/dev: .venv/made
	@echo "installing what the tests need into .venv: about 2.5 GB, or several more with PyTorch for" \
		"NVIDIA GPUs, a few minutes"
	@$(call install,$(subst $(space),$(comma),$(EXTRAS)),--no-compile)
	@PATH="$(CURDIR)/$(BIN):$$PATH" npm install --no-save --silent \
		axe-core@4.14 @biomejs/biome@2.6 pyright@1.1
	@touch .venv/ready $@

# torch, which is gigabytes, is that of .venv, as it is; pip adds what it asks for.
.venv/lowest/ready: .venv/dev tests/lowest.py
	@echo "installing the lowest versions that are allowed into .venv/lowest"
	@$(PYTHON) -m venv --clear .venv/lowest
	@cd .venv/lowest/lib/python3*/site-packages && \
		ln -s ../../../../lib/python3*/site-packages/torch* ../../../../lib/python3*/site-packages/functorch .
	@$(PYTHON) -m tests.lowest >.venv/lowest/requirements.txt
	@.venv/lowest/bin/pip install --quiet --disable-pip-version-check --no-compile \
		--requirement .venv/lowest/requirements.txt
	@touch $@
