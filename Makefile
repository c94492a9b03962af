# A thin front of CMake.  `make demo` and `make check` install what is missing and say what; `make` alone builds.
BUILD  ?= build
TYPE   ?= Release
CMAKE  ?= cmake
CFLAGS_CMAKE = -DCMAKE_BUILD_TYPE=$(TYPE) $(if $(PREFIX),-DCMAKE_INSTALL_PREFIX=$(PREFIX)) $(OPTIONS)
JOBS   := $(shell nproc 2>/dev/null || echo 2)

all: build

build:
	@$(CMAKE) -S . -B $(BUILD) $(CFLAGS_CMAKE) >$(BUILD).log 2>&1 || { cat $(BUILD).log; rm -f $(BUILD).log; exit 1; }
	@rm -f $(BUILD).log
	@$(CMAKE) --build $(BUILD) -j $(JOBS) $(if $(TARGETS),--target $(TARGETS))

# what the compiler says goes to a file unless it fails; how far it is is said
quiet:
	@mkdir -p $(BUILD)
	@sh scripts/progress.sh $(BUILD)/make.log "building facula" $(MAKE) --no-print-directory build

# classifies real photos with a real network, trains one, asks a language model; DEVICE=opencl: there; LM=0: no language model
demo:
	@sh scripts/setup.sh demo
	@$(MAKE) --no-print-directory quiet OPTIONS="-DFACULA_TESTS=OFF"
	@LM=$(LM) sh scripts/demo.sh $(BUILD)/facula $(DEVICE)

# builds and runs every test.  Random numbers begin at 1, as in CI: the same commit gives the same
# answer everywhere.  SEED=random draws, and each test prints where it began; SEED=N repeats that,
# and tests/many_seeds.sh tries many
SEED = $(or $(FACULA_SEED),1)
check:
	@sh scripts/setup.sh check
	@$(MAKE) --no-print-directory quiet OPTIONS="-DFACULA_TESTS=ON -DFACULA_PYTHON=ON"
	@cd $(BUILD) && env $(if $(filter random,$(SEED)),-u FACULA_SEED,FACULA_SEED=$(SEED)) \
		ctest --output-on-failure --timeout 1200 -j $(JOBS)

# against ONNX Runtime and PyTorch, which it installs for itself: one table, $(BUILD)/bench.md, and its rows for
# docs/benchmarks, $(BUILD)/bench.rows.json.  It takes hours, says where it is, and goes on where it was interrupted.
# ONLY=networks,start: parts; LIGHT=DIR: ONNX's light models; BENCH: see bench/all.py
VENV ?= $(BUILD)/venv
bench:
	@sh scripts/setup.sh bench
	@$(MAKE) --no-print-directory quiet OPTIONS="-DFACULA_TESTS=ON" TARGETS="facula bench_gradient"
	@[ -x $(VENV)/bin/pip ] || python3 -m venv $(VENV)
	@$(VENV)/bin/python -c 'import onnx, onnxruntime, torch, torchvision' 2>/dev/null || \
		{ echo "installing onnxruntime and torch in $(VENV)"; $(VENV)/bin/pip install -q onnx onnxruntime torch torchvision; }
	@$(VENV)/bin/python bench/all.py --facula $(BUILD)/facula --out $(BUILD)/bench.md $(if $(ONLY),--only $(ONLY)) \
		$(if $(LIGHT),--light $(LIGHT)) $(BENCH)

# the Python package: built, installed into a virtual environment of its own, tested from there
PYTHON ?= python3
PYVENV ?= $(BUILD)/python-venv
python:
	@sh scripts/setup.sh python
	@mkdir -p $(BUILD)
	@[ -x $(PYVENV)/bin/pip ] || $(PYTHON) -m venv $(PYVENV)
	@sh scripts/progress.sh $(BUILD)/python.log "building the Python package" $(PYVENV)/bin/pip install ".[test]"
	@$(PYVENV)/bin/python -m pytest -q python/tests
	@echo "facula is in $(PYVENV): $(PYVENV)/bin/python"

install: build
	@$(CMAKE) --install $(BUILD)

uninstall:
	@xargs rm -fv < $(BUILD)/install_manifest.txt

clean:
	rm -rf $(BUILD)

.PHONY: all build quiet demo check python bench install uninstall clean
