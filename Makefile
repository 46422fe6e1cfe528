# Every target does its own set-up: a fresh clone needs Python 3.11, make and a C compiler. What is to be looked at
# (demo, play, site) installs the package and the playground; the others install their tools on top of that.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt
AXE    := build/axe/node_modules/axe-core/axe.min.js
ORT    := build/ort/node_modules/onnxruntime-web/dist/ort.wasm.min.js

.PHONY: demo play site site-with-experts notebook test test-core test-slow test-gpu test-web test-wheel check bench tree docs clean

# What they import is compiled as they do, and kept: pip would compile everything first, which takes longer.
demo play site: export PYTHONDONTWRITEBYTECODE :=

demo: $(VENV)/.ready-to-play
	$(BIN)/factordiff demo

# The playground; it says its address. PORT=0 takes any free port.
PORT ?= 8000
play: $(VENV)/.ready-to-play
	$(BIN)/factordiff play --port $(PORT)

# The stories as a page that needs no server: build/site/index.html, or any static host.
site: $(VENV)/.ready-to-play
	rm -rf build/site
	$(BIN)/factordiff play --export build/site

# The same with the experts, which solve in the browser: for a static host, such as `python -m http.server`.
site-with-experts: $(VENV)/.ready-onnx $(ORT)
	rm -rf build/site-with-experts
	$(BIN)/factordiff play --export build/site-with-experts --with-experts

# The notebook with its outputs, anew: after a change of weights or of what a cell shows.
notebook: $(VENV)/.ready
	$(BIN)/python notebooks/execute.py

# Types and shapes are checked at every call where the mathematics is; elsewhere that would take most of the time, and
# test-slow does it.
CORE := tests/composition tests/diffusion tests/sampling tests/properties
CHECKED := $(CORE) tests/engine tests/experts tests/networks tests/fitting tests/team tests/text tests/test_tensors.py \
	tests/test_collection.py

test: $(VENV)/.ready
	$(BIN)/pytest -n 2 $(CHECKED)
	$(BIN)/pytest -n 2 -o addopts="--strict-markers -q -m 'not slow'" $(CHECKED:%=--ignore=%) tests

# For everyday work: the mathematics and the loop, in under a minute.
test-core: $(VENV)/.ready
	$(BIN)/pytest -n 2 $(CORE)

# On a machine with a GPU, from the source tree, with the Python that has torch there: nothing is installed.
test-gpu:
	PYTHONPATH=src $(PYTHON) -m pytest -o addopts="--strict-markers -q" -m gpu $$(grep -rl "pytest.mark.gpu" tests)

test-slow: $(VENV)/.ready
	$(BIN)/pytest -n 2 -m "slow or not slow"

test-web: $(VENV)/.ready-web $(VENV)/.ready-onnx $(AXE) $(ORT)
	FACTORDIFF_BROWSER=1 $(BIN)/pytest -o addopts="--strict-markers -q" tests/web/browser  # without shape checks: faster

# The wheel in a fresh environment outside the repository, with every Python of the list that is installed; a part of
# test-slow.
test-wheel: $(VENV)/.ready
	$(BIN)/pytest -m slow -rs tests/test_wheel.py

check: $(VENV)/.ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(VENV)/.ready
	for file in benchmarks/bench_*.py; do $(BIN)/python $$file || exit 1; done

tree: $(VENV)/.ready
	$(BIN)/python docs/tree.py

docs: $(VENV)/.ready
	rm -rf build/docs
	$(BIN)/sphinx-build --fail-on-warning --keep-going --fresh-env -d build/doctrees -c docs . build/docs
	@echo "open build/docs/index.html"

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.ready-to-play: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable ".[web]"
	touch $@

$(VENV)/.ready: $(VENV)/.ready-to-play
	$(PIP) --editable ".[data,hub,hf,tensorboard,web,docs,dev]"
	-$(BIN)/python -W ignore -m compileall -qq -j 0 $(VENV)/lib
	touch $@

# What looks for barriers on the page; only these tests use it, so it comes from npm when they are run.
$(AXE):
	npm install --silent --no-save --prefix build/axe axe-core@4.14.0

# What runs experts in a browser: 12 MB that only a site with experts holds, so it is fetched when one is written.
$(ORT):
	npm install --silent --no-save --prefix build/ort onnxruntime-web@1.23.2

$(VENV)/.ready-onnx: $(VENV)/.ready
	$(PIP) --editable ".[onnx]"
	touch $@

# The browser is Debian's: it is installed when it is missing, which needs root.
CHROMIUM := /usr/bin/chromium
$(VENV)/.ready-web: $(VENV)/.ready
	$(PIP) --editable ".[web-test]"
	test -x $(CHROMIUM) || { echo "$(CHROMIUM) is missing: installing it with apt-get"; apt-get update -q && apt-get install -q -y chromium; }
	touch $@
