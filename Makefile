# Everything a person or CI runs. `make help` lists it.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test lint install bench eval mutants soak sim pins system-tools

VENV := .venv
BIN := $(VENV)/bin

# Where `make install` puts the program: $(PREFIX)/lib/roost, and $(BINDIR)/roost pointing into it.
# Not below the data directory (~/.local/share/roost), which holds memories and nothing else.
PREFIX ?= $(HOME)/.local
BINDIR ?= $(PREFIX)/bin
APP := $(PREFIX)/lib/roost

# A Python that is 3.11 or 3.12 and can make a virtual environment. Each candidate is run, since a
# version manager's stand-in may be on PATH and fail. Evaluated only where an environment is made.
USABLE := 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))'
READY := 'import pip, sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))'
CANDIDATES = $(or $(PYTHON),python3.12 python3.11 python3)
FOUND = $(shell for p in $(CANDIDATES); do \
	"$$p" -c $(USABLE) >/dev/null 2>&1 && { command -v "$$p"; break; }; done)
ADVICE = Roost needs Python 3.11 or 3.12 with venv: install one (on Debian 12: \
	apt-get install python3-venv) or name yours with make PYTHON=/path/to/python3

# $(call ensure-env,DIR): a working environment in DIR, made anew only when there is none.
ensure-env = $(if $(shell '$(1)/bin/python' -c $(READY) 2>/dev/null && echo yes),@:,$\
	$(call make-env,$(1),$(or $(FOUND),$(error $(ADVICE)))))
make-env = @echo "Making $(1) with $(2)"; '$(2)' -m venv --clear '$(1)'

# $(call install-pinned,DIR,FILE): what FILE names, nothing without a hash. The build tools come
# first, so that nothing is built with tools that were fetched unchecked. Byte code is made at first
# use, but for the installed program, whose folder may be read-only to it.
PIP_FLAGS := --quiet --disable-pip-version-check --no-compile
install: PIP_FLAGS += --compile
define install-pinned
@echo "Installing $(2) into $(1)"
@'$(1)/bin/python' -m pip install $(PIP_FLAGS) --require-hashes -r requirements/build.txt
@'$(1)/bin/python' -m pip install $(PIP_FLAGS) --require-hashes --no-build-isolation -r $(2)
endef
install-roost = @'$(1)/bin/python' -m pip install $(PIP_FLAGS) --no-build-isolation --no-deps

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 16

demo: $(VENV)/.stamp-run ## two nodes on this machine that share a memory, and forget it
	@$(BIN)/roost demo

test: $(VENV)/.stamp-dev system-tools lint ## lint, then every test
	@HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-ci} $(BIN)/python -m pytest -n 3 --dist worksteal $(ARGS)

lint: $(VENV)/.stamp-dev ## style, formatting, types and import contracts
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

install: ## the program for this account, as the command roost (PREFIX=~/.local)
	$(call ensure-env,$(APP))
	$(call install-pinned,$(APP),requirements/run.txt)
	$(call install-roost,$(APP)) --force-reinstall .
	@mkdir -p '$(BINDIR)'
	@if [ -e '$(BINDIR)/roost' ] && [ ! -L '$(BINDIR)/roost' ]; then \
		echo "$(BINDIR)/roost is not ours to replace: move it away and run make install again" >&2; \
		exit 1; fi
	@ln -sfn '$(APP)/bin/roost' '$(BINDIR)/roost'
	@echo "Installed $(BINDIR)/roost (to remove it: rm -r '$(APP)' '$(BINDIR)/roost')"
	@case ":$$PATH:" in *":$(BINDIR):"*) ;; \
		*) echo "$(BINDIR) is not on your PATH: add it, or call roost by its full name";; esac

bench: $(VENV)/.stamp-dev ## the budgets, measured
	@$(BIN)/python -m tests.bench.run $(ARGS)

# LOCOMO names the data set (locomo10.json, not part of this repository); CHOOSE and REPORT its
# conversations that parameters were chosen on, and those that are reported beside them.
eval: $(VENV)/.stamp-dev ## how well search finds: make eval LOCOMO=FILE CHOOSE=0,2,4,6,8 REPORT=1,3,5,7,9
	@$(BIN)/python -m tests.eval.locomo $(if $(LOCOMO),--data '$(LOCOMO)') \
		$(if $(CHOOSE),--choose $(CHOOSE)) $(if $(REPORT),--report $(REPORT)) $(ARGS)

mutants: $(VENV)/.stamp-dev ## bugs of one line that the tests must find; ARGS='--only WORD'
	@$(BIN)/python -m tests.mutants.run $(ARGS)

# AWAITS=--help: kills at awaits; FUZZ=--help: hostile inputs.
soak: $(VENV)/.stamp-dev ## long runs, one after the other; ARGS=--help: of the simulation
	@$(BIN)/python -m tests.sim.soak $(ARGS)
	@$(BIN)/python -m tests.awaits.run $(AWAITS)
	@$(BIN)/python -m tests.fuzz.run $(FUZZ)
	@MCP_WRITES=200 $(BIN)/python -m pytest tests/surface/test_mcp.py -k M_H2 --timeout=0
	@CRASH_ROUNDS=$${CRASH_ROUNDS:-1000} CRASH_CUTS=$${CRASH_CUTS:-1000} CRASH_STRIDE=$${CRASH_STRIDE:-1} \
		$(BIN)/python -m pytest tests/crash --timeout=0

sim: $(VENV)/.stamp-dev ## one simulated run; SEED=n repeats one
	@$(BIN)/python -m tests.sim.run $(if $(SEED),--seed $(SEED)) $(ARGS)

# Needs uv. ARGS=--upgrade moves what pyproject.toml leaves open.
COMPILE = uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header
pins: ## rewrite requirements/*.txt from pyproject.toml (needs uv)
	@$(COMPILE) $(ARGS) pyproject.toml --group dev -o requirements/dev.txt
	@$(COMPILE) $(ARGS) pyproject.toml -c requirements/dev.txt -o requirements/run.txt
	@$(COMPILE) $(ARGS) --group pyproject.toml:build -c requirements/dev.txt \
		-o requirements/build.txt

# Some tests make network namespaces, filter packets, watch system calls or drive a terminal. They
# skip themselves, with the reason, where the tool is missing.
system-tools:
	@if [ "$$(id -u)" = 0 ] && [ -e /etc/debian_version ]; then \
		for tool in ip nft strace tmux; do \
			command -v $$tool >/dev/null || missing="$$missing $$tool"; done; \
		if [ -n "$$missing" ]; then echo "Installing what provides$$missing"; \
			export DEBIAN_FRONTEND=noninteractive; \
			{ apt-get update -qq && apt-get install -y -qq --no-install-recommends \
				iproute2 nftables strace tmux >/dev/null; } \
			|| echo "could not install them: the tests that need them will be skipped"; fi; fi

$(VENV)/.stamp-run: requirements/build.txt requirements/run.txt pyproject.toml
	$(call ensure-env,$(VENV))
	$(call install-pinned,$(VENV),requirements/run.txt)
	$(call install-roost,$(VENV)) --editable .
	@touch $@

$(VENV)/.stamp-dev: requirements/build.txt requirements/dev.txt pyproject.toml
	$(call ensure-env,$(VENV))
	$(call install-pinned,$(VENV),requirements/dev.txt)
	$(call install-roost,$(VENV)) --editable .
	@touch $@ $(VENV)/.stamp-run
