# make release, make test: all that a newcomer needs. `make help` lists the rest.
SHELL := /bin/bash
PYTHON ?= python3
VENV ?= .venv
# A second, measuring environment takes PyTorch from the index of its ROCm or CUDA build and drops the pins:
#   make venv VENV=.venv-rocm TORCH_INDEX=https://download.pytorch.org/whl/rocm6.4 CONSTRAINTS=
TORCH_INDEX ?=
CONSTRAINTS ?= constraints.txt
BUDGET ?= 240s
FULL ?=

BIN := $(VENV)/bin
PIP_FLAGS := $(if $(CONSTRAINTS),-c $(CONSTRAINTS)) $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))
STAMP := $(VENV)/.installed-$(shell cat pyproject.toml $(CONSTRAINTS) | cksum | cut -d' ' -f1)

.PHONY: help venv release test test-all lint clean
.DEFAULT_GOAL := help

help:
	@echo 'make release          rebuild both releases, render site/, write the bundle (FULL=1: published protocol)'
	@echo 'make test             lint and the fast tests'
	@echo 'make test-all         lint and every test'
	@echo 'make lint             ruff and mypy'
	@echo 'make venv             only install into $(VENV)'
	@echo 'make clean            remove what the above made, measurements of this machine included'

venv: $(STAMP)

$(STAMP):
	@echo '== installing into $(VENV) (a few minutes the first time)'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -c 'import sys; sys.exit(not ((3, 11) <= sys.version_info[:2] < (3, 15)))' \
	  || { echo 'solbench needs Python 3.11 to 3.14; pass PYTHON=python3.12, say'; exit 2; }
	@$(BIN)/python -m pip install -qq $(PIP_FLAGS) -e '.[run,release,dev]'
	@rm -f $(VENV)/.installed-*; touch $@

release: $(STAMP)
	@command -v g++ >/dev/null || { echo 'a C++ compiler is missing; apt-get install g++'; exit 2; }
	@echo '== published release: computed stages and recorded measurements'
	@$(BIN)/solbench repro
	@echo '== local release: the cpu of this machine, $(if $(FULL),published protocol (six processes a solution),quick protocol (one process a solution), at most $(BUDGET))'
	@$(BIN)/solbench repro --local $(if $(FULL),--full --budget 12h,--budget $(BUDGET))
	@echo '== bundle'
	@$(BIN)/solbench bundle --root local
	@$(BIN)/solbench bundle
	@echo 'site: site/index.html (published), local/site/index.html (this machine)'

test: lint
	@$(BIN)/python -m pytest -m 'not slow' -n 2

test-all: lint
	@$(BIN)/python -m pytest -n 2

lint: $(STAMP)
	@$(BIN)/ruff check . && $(BIN)/ruff format --check -q . && $(BIN)/mypy

clean:
	@chmod -R u+w local store 2>/dev/null || true
	rm -rf $(VENV) local .solbench site store/*/ release/*.zip release/*.tar release/*.tar.gz release/*.b3 .mypy_cache .ruff_cache .hypothesis
