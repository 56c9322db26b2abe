# Every target installs what it needs into .venv, and skips that while nothing has changed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --constraint constraints.txt
# Bytecode is written, whatever the environment says: else each worker of each run compiles everything again.
PYTEST := OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --numprocesses=logical --dist=worksteal

.PHONY: demo test quick test-cpus test-printed test-slow test-gpu check format docs benchmark peers clean

# Those tests are about CPUs, and see no GPU where there is one.
test quick test-cpus test-printed test-slow: export CUDA_VISIBLE_DEVICES :=

demo: $(VENV)/.ready
	$(BIN)/lengthwise demo

test: $(VENV)/.ready-test
	$(PYTEST) -m "not slow and not gpu" --ignore=tests/lint

# Checks the shapes and types of arguments and results against their annotations, which takes a third longer.
SHAPES := --jaxtyping-packages=lengthwise,checked_types.first_calls

# One case of each test that takes little time, with its shapes.
quick: $(VENV)/.ready-test
	$(PYTEST) $(SHAPES) -m quick tests

# What compares floating-point numbers, with the kernels of other CPUs than this one; once with shapes.
NUMERICS := tests/ops tests/layers tests/models tests/extraction tests/certification tests/training
test-cpus: $(VENV)/.ready-test
	ATEN_CPU_CAPABILITY=default MKL_CBWR=COMPATIBLE $(PYTEST) $(SHAPES) -m "not slow and not gpu" $(NUMERICS)
	ATEN_CPU_CAPABILITY=avx2 MKL_ENABLE_INSTRUCTIONS=AVX2 $(PYTEST) -m "not slow and not gpu" $(NUMERICS)

# The slow tests that train the nets of README, pages and notebooks as long as these state, and compare what they print:
# about five CPU minutes, more than a third of them for the tutorial. The members that the page about extending registers
# are put under all contracts.
PRINTED := "python or doubt or compared or lesson or demo or contracts"
test-printed: $(VENV)/.ready-test
	$(PYTEST) -m slow -k $(PRINTED) tests/test_examples.py tests/test_extending.py tests/test_notebooks.py tests/test_learning.py

# What trains, or needs an extra that the default tests do without: clusters of Ray, trackers, data sets. And 200
# examples of each property instead of 15.
test-slow: $(VENV)/.ready-slow
	$(PYTEST) -m slow
	$(PYTEST) -m "hypothesis and not slow and not gpu" --hypothesis-profile=thorough tests
	$(PYTEST) -m "not gpu" tests/contracts/test_pool_contract.py

# On a machine with an NVIDIA GPU, and a build of torch for it.
test-gpu: $(VENV)/.ready-test
	$(PYTEST) -m gpu tests/training

check: $(VENV)/.ready-test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(PYTEST) tests/lint

format: $(VENV)/.ready-test
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: $(VENV)/.ready-docs docs/playground/gallery.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# The page with four nets (docs/playground.md), made once: three are trained for about a minute, one is compiled.
LSTM := --set model.d_model=24 --set train.min_length=1 --set train.max_length=20 --set train.steps=2000 \
	--set train.batch_size=64 --set train.optimizer.learning_rate=0.01
docs/playground/gallery.html: | $(VENV)/.ready-docs
	rm -rf .gallery
	$(BIN)/lengthwise train cycle-navigation block-linear-rnn --until proved --runs .gallery
	$(BIN)/lengthwise train tomita block-linear-rnn --set task.index=3 --until proved --runs .gallery
	$(BIN)/lengthwise compile --task even-pairs --to regular-gpt --out .gallery/even-pairs
	$(BIN)/lengthwise train parity lstm $(LSTM) --runs .gallery
	mkdir -p $(@D)
	$(BIN)/lengthwise play .gallery/* --out $@ --title "Four nets"
	rm -rf .gallery

# Peers that nothing else needs are installed into an environment of the benchmarks' own.
benchmark: $(VENV)-benchmark/.ready
	OMP_NUM_THREADS=1 $(VENV)-benchmark/bin/python benchmarks/regular_gpt.py --save
	OMP_NUM_THREADS=1 $(VENV)-benchmark/bin/python benchmarks/recurrence.py --save

peers: $(VENV)-benchmark/.ready
	OMP_NUM_THREADS=1 $(VENV)-benchmark/bin/python benchmarks/peers.py --save

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "lengthwise needs Python 3.11 or newer; run make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.ready: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(INSTALL) --editable .
	touch $@

$(VENV)/.ready-test: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(INSTALL) --editable '.[test]'
	touch $@ $(VENV)/.ready

$(VENV)/.ready-slow: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(INSTALL) --editable '.[test,wandb,trackio,mlflow,ray,datasets,verifiers]'
	touch $@ $(VENV)/.ready $(VENV)/.ready-test

$(VENV)/.ready-docs: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(INSTALL) --editable '.[docs]'
	touch $@ $(VENV)/.ready

$(VENV)-benchmark/.ready: pyproject.toml constraints.txt
	$(MAKE) VENV=$(VENV)-benchmark $(VENV)-benchmark/bin/python
	$(VENV)-benchmark/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[benchmark]'
	touch $@

clean:
	rm -rf $(VENV) $(VENV)-benchmark site .mypy_cache .pytest_cache .ruff_cache .hypothesis
