# Every target sets up what it needs by itself: a clean clone, Python >= 3.11 with venv, and `make test` is enough.
# ARGS is passed on: make test ARGS="tests/cpu -k view", make bench ARGS=--help.

PYTHON ?= python3
ARGS ?=

# In the order of their requirements. A new distribution is added here, and its extra in core/pyproject.toml.
DISTRIBUTIONS := core backends/arrayapi backends/cpu backends/clike backends/native backends/opencl backends/cuda nn distributed conformance
METADATA := $(DISTRIBUTIONS:%=%/pyproject.toml)
NAMES := $(patsubst %,candelabra-%,$(filter-out core,$(notdir $(DISTRIBUTIONS))))
# Of the machine with the GPU, for cuda-wheels and cuda-kernels; and the distributions that its check installs.
PYTHON_VERSION ?= 3.12
PLATFORM ?= manylinux_2_28_x86_64
CAPABILITY ?= 90
# The processors for which make dist compiles kernels.
MACHINES ?= x86_64 aarch64
CHECKED := $(filter-out backends/opencl,$(DISTRIBUTIONS))

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Bytecode is kept, whatever the shell says: tests start hundreds of interpreters, and each would compile everything.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help index demo test test-all test-levels test-opencl test-intel lint bench bench-opencl cuda-check cuda-wheels cuda-kernels oracle mutants docs dist changelog clean
# Two targets at once (make -j lint test) would run pip twice in one environment.
.NOTPARALLEL:
.DELETE_ON_ERROR:

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

# Before anything that imports candelabra: a checkout's sources may have moved on since the index was written.
index: ## the index of public names and the type stubs, from the sources
	@$(PYTHON) tools/generate

demo: .venv/.demo .venv/.kernels index ## learn to read handwritten digits
	.venv/bin/python examples/digits.py $(ARGS)

# worksteal hands out neighbouring tests together, so that what a file prepares is seldom prepared twice.
test: .venv/.test .venv/.kernels index ## the tests, with samples where there are very many cases
	.venv/bin/python -m pytest -n 2 --dist worksteal $(ARGS)

test-all: .venv/.test .venv/.kernels index ## the tests, with all cases
	.venv/bin/python -m pytest -n 2 --dist worksteal -m '' $(ARGS)

test-levels: .venv/.test .venv/.kernels index ## the numerical tests as on older processors, for each level of NumPy and for PoCL
	.venv/bin/python -m candelabra_native.pack --lower --objects .venv/kernels/native
	.venv/bin/python tools/levels.py $(ARGS)

# Each in a process of its own: the PoCL that .venv brings, drivers of the system, and Intel's if it was installed here.
test-opencl: .venv/.test index ## the tests of OpenCL, on every implementation that is present
	.venv/bin/python tools/opencl_drivers.py $(ARGS)
	if [ -e .venv-intel/.packages ]; then .venv-intel/bin/python tools/opencl_drivers.py --only Intel $(ARGS); fi

test-intel: .venv-intel/.packages index ## the tests of OpenCL, on Intel's implementation (a large download, for any x86-64)
	.venv-intel/bin/python tools/opencl_drivers.py --only Intel $(ARGS)
	.venv-intel/bin/python tools/levels.py --opencl $(ARGS)

lint: .venv/.lint index ## style, types, seeds of tests, and whether what is generated is current
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/python tools/prose.py
	.venv/bin/mypy --strict
	.venv/bin/python tools/operators.py --check
	.venv/bin/python tools/fallbacks.py --check
	.venv/bin/python tools/generators.py
	.venv/bin/python tools/operator_bodies.py

bench: .venv/.packages .venv/.kernels .venv-peer/.peer index ## time against PyTorch, in the same run (ARGS=--compilers: other compilers, too)
	.venv/bin/python -m benchmarks $(ARGS)

# tinygrad is an optional peer of both: make .venv-tinygrad/.tinygrad
bench-opencl: .venv/.demo .venv-peer/.peer index ## time every OpenCL driver against its peers; reports into docs/reports/
	.venv/bin/python -m benchmarks.opencl $(ARGS)

# It first looks whether there is a GPU (exit status 3 where there is none): the rest is a large download.
# make cuda-check PEER=/usr/bin/python3 compares with the PyTorch that is there. With WHEELS, the folder of cuda-wheels,
# nothing is downloaded: .venv stands on what PYTHON has, PyTorch too.
cuda-check: $(if $(WHEELS),.venv/.wheels,.venv/.cuda) index ## all that can be checked of a GPU, into docs/reports/
	.venv/bin/python tools/cuda_check.py --look $(ARGS)
	@$(if $(WHEELS),:,$(MAKE) --no-print-directory .venv/.check $(if $(PEER),,.venv-peer/.peer))
	.venv/bin/python tools/cuda_check.py --peer $(or $(PEER),$(if $(WHEELS),.venv,.venv-peer)/bin/python) $(ARGS)

cuda-wheels: .venv/.packages ## what cuda-check installs, for a machine without a package index, into cuda-wheels/
	.venv/bin/python tools/cuda_wheels.py --python-version $(PYTHON_VERSION) --platform $(PLATFORM) \
		--to $(or $(WHEELS),cuda-wheels) $(CHECKED)

cuda-kernels: .venv/.cuda index ## what cuda-check compiles, for GPUs of one CAPABILITY, into cuda-kernels-<capability>.tar.xz
	.venv/bin/python tools/cuda_kernels.py --capability $(CAPABILITY) --archive cuda-kernels-$(CAPABILITY).tar.xz $(ARGS)

oracle: .venv-peer/.packages index ## hold the operators against PyTorch, with the samples in its own wheel
	.venv-peer/bin/python tools/oracle_optimizers.py --journal .venv-peer/oracle/optimizers.jsonl
	.venv-peer/bin/python tools/oracle_modules.py --journal .venv-peer/oracle/modules.jsonl
	.venv-peer/bin/python tools/oracle.py --nn --journal .venv-peer/oracle/operators.jsonl --report docs/reports/oracle.md $(ARGS)
	CANDELABRA_COMPILE=0 .venv-peer/bin/python tools/oracle_compiled.py --journal .venv-peer/oracle/compiled.jsonl --report docs/reports/oracle.md
	.venv-peer/bin/python -W ignore tools/oracle_transforms.py
	.venv-peer/bin/python tools/oracle_bad_calls.py --journal .venv-peer/oracle/peer_bad_calls.jsonl
	.venv-peer/bin/python tools/bad_calls.py --journal .venv-peer/oracle/bad_calls.jsonl --report docs/reports/bad-calls.md
	.venv-peer/bin/python tools/peer_names.py --report docs/reports/names.md

mutants: .venv/.packages index ## broken backends that the conformance suite must catch; the kill matrix
	.venv/bin/python -m candelabra_conformance.mutants --systematic --report docs/reports $(ARGS)

docs: .venv/.packages index ## the operators' documentation, from their records, into docs/operators/
	.venv/bin/python tools/operators.py $(ARGS)
	.venv/bin/python tools/fallbacks.py $(ARGS)

# candelabra-native's wheels are made in .venv, where what its kernels are made from is installed: ten minutes of two cores.
dist: .venv/.dist index ## wheels and sdists of every distribution, into dist/
	@rm -rf dist
	@for each in $(filter-out backends/native,$(DISTRIBUTIONS)); do \
		echo "dist: $$each"; \
		.venv/bin/python -m build --outdir dist $$each >.venv/dist.log 2>&1 || { cat .venv/dist.log; exit 1; }; \
	done
	@for each in $(MACHINES); do \
		echo "dist: backends/native for $$each"; \
		CANDELABRA_NATIVE_PACK=full CANDELABRA_NATIVE_PLATFORM=$$each .venv/bin/python -m build --no-isolation \
			--outdir dist backends/native >.venv/dist.log 2>&1 || { cat .venv/dist.log; exit 1; }; \
	done
	@ls -l dist

changelog: .venv/.dist ## news/ into CHANGELOG.md, under the core's version (ARGS=--draft only prints it)
	.venv/bin/towncrier build --yes --version "$$(.venv/bin/python -c 'import candelabra; print(candelabra.__version__)')" $(ARGS)

clean: ## remove the environments and what was built
	rm -rf .venv .venv-peer .venv-intel .venv-tinygrad dist
	rm -f backends/native/src/candelabra_native/*/*.so

# Every distribution, editable, in the environment $(1), and the requirements $(2). They are built by one hatchling: an
# isolated environment for each would take four times as long.
define install
@$(1)/bin/python -m pip install --quiet 'hatchling>=1.27'
@$(1)/bin/python -m pip install --quiet --no-build-isolation --no-deps $(DISTRIBUTIONS:%=--editable ./%)
@$(1)/bin/python -m pip install --quiet $(2) $(NAMES)
endef

# A stamp is newer than what it was made from. The packages are editable, so only metadata makes them stale.
.venv/.packages: $(METADATA)
	@echo "setup: .venv with $(DISTRIBUTIONS)"
	@$(PYTHON) -m venv .venv
	@.venv/bin/python -m pip install --quiet --upgrade 'pip>=25.1' # the first with --group
	$(call install,.venv,'candelabra[all]' 'candelabra[pocl]')
	@touch $@

# The kernels of the device cpu: those of a short list, for this processor. Object files are kept, so that a change to one
# kernel compiles a few. Without a compiler NumPy serves, and everything works.
.venv/.kernels: .venv/.packages pyproject.toml $(shell find backends/clike/src backends/native/src -name '*.[ch]' -o -name '*.py' -o -name '*.txt') | index
	@echo "setup: the kernels of the device cpu"
	@.venv/bin/python -m pip install --quiet --group native >.venv/native.log 2>&1 \
		|| echo "native: the compiler cannot be installed, see .venv/native.log"
	@.venv/bin/python -m candelabra_native.pack --objects .venv/kernels/native
	@touch $@

.venv/.wheels: pyproject.toml $(METADATA)
	@echo "setup: .venv on what $(PYTHON) has, the rest from $(WHEELS)"
	@$(PYTHON) tools/cuda_environment.py .venv
	@.venv/bin/python tools/cuda_install.py --wheels $(WHEELS) $(CHECKED)
	@touch $@

.venv/.%: .venv/.packages pyproject.toml
	@echo "setup: what $* needs"
	@.venv/bin/python -m pip install --quiet --group $*
	@touch $@

# Intel's OpenCL for processors is a large download (0.85 GB), and found beside the interpreter: .venv stays without it.
.venv-intel/.packages: pyproject.toml $(METADATA)
	@echo "setup: .venv-intel with $(DISTRIBUTIONS) and Intel's OpenCL (a large download)"
	@$(PYTHON) -m venv .venv-intel
	@.venv-intel/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(call install,.venv-intel,'candelabra[all]' 'candelabra[intel]' --group intel)
	@touch $@

.venv-peer/.%: pyproject.toml
	@echo "setup: .venv-peer, what we are compared with (a large download)"
	@if [ ! -d .venv-peer ] && [ -t 0 ]; then printf 'go on? [y/N] '; read answer; [ "$$answer" = y ]; fi
	@$(PYTHON) -m venv .venv-peer
	@.venv-peer/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	@.venv-peer/bin/python -m pip install --quiet --group $*
	@touch $@

.venv-tinygrad/.tinygrad: pyproject.toml
	@echo "setup: .venv-tinygrad, a further peer of OpenCL"
	@$(PYTHON) -m venv .venv-tinygrad
	@.venv-tinygrad/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	@.venv-tinygrad/bin/python -m pip install --quiet --group tinygrad
	@touch $@

.venv-peer/.packages: .venv-peer/.peer $(METADATA)
	@echo "setup: .venv-peer with $(DISTRIBUTIONS)"
	$(call install,.venv-peer,'candelabra[all]')
	@touch $@
