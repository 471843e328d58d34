# SPDX-License-Identifier: Apache-2.0
# `make help` lists what there is. Each goal installs from Debian what it needs and is not there.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

jobs ?= $(shell nproc)
# The compiler this is developed with stops at a warning; a newer one, which warns of more, goes on.
werror = $(if $(filter 12,$(shell g++ -dumpversion 2>/dev/null)),ON,OFF)
configure = cmake --log-level=WARNING -DCMAKE_COMPILE_WARNING_AS_ERROR=$(werror)
compile = cmake --build $(1) --parallel $(jobs)
release = build/release
tests = ctest --test-dir $(release) --output-on-failure --no-tests=error
python = $(firstword $(wildcard /usr/bin/python3) python3)

# One compiler cache serves all clones of the project on a machine.
export CCACHE_BASEDIR := $(CURDIR)
# One more than there are cores: several tests spend most of their time watching.
export CTEST_PARALLEL_LEVEL ?= $(shell echo $$(($(jobs) + 1)))

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: build
build: ## the program, at build/release/bin/rayhook
	@scripts/install-deps.sh build
	@$(MAKE) -s $(release)/build.ninja
	@$(call compile,$(release)) --target rayhook

# Without the tests, which need more packages; `make test` turns them on and they stay on.
$(release)/build.ninja: CMakePresets.json
	@$(configure) --preset release $(if $(wildcard $(release)/CMakeCache.txt),,-DRAYHOOK_TESTS=OFF)
	@touch $@

.PHONY: image
image: ## the container image, at build/image/rayhook-VERSION-amd64.tar; as root
	@scripts/image.sh

.PHONY: demo
demo: ## the example through a real HTTPS webhook on this machine, before and after
	@scripts/demo.sh

.PHONY: check
check: deps-test release-tests ## the daily tests (unit, cli, server, lint), under 5 minutes
	@$(tests) --label-regex '^(unit|cli|server|lint)$$'

.PHONY: test
test: deps-test ## every test: see docs/testing.md
	@scripts/install-deps.sh e2e manifests fuzz outside $(if $(filter 0,$(shell id -u)),fresh image cluster)
	@$(MAKE) release-tests asan-ubsan-tests tsan-tests fuzz-tests
	@tests/e2e/binaries.sh >/dev/null || [[ "$${CI:-}" != true ]]
	@tests/manifests/tools.sh >/dev/null || [[ "$${CI:-}" != true ]]
	@tests/outside/tools.sh >/dev/null || [[ "$${CI:-}" != true ]]
	@$(tests)

.PHONY: fresh-test
fresh-test: ## make demo on a bare Debian 12 (DEBIAN=trixie: 13) in a chroot; as root
	@scripts/install-deps.sh fresh
	@tests/fresh/fresh_test.sh

.PHONY: cluster-test
cluster-test: deps-test release-tests ## jobs on a real node with real Ray, without Rayhook and with it; as root
	@scripts/install-deps.sh e2e manifests image cluster
	@bin=$$(tests/e2e/binaries.sh | tail -n 1) && tools=$$(tests/manifests/tools.sh | tail -n 1) && \
		$(python) tests/cluster/cluster_test.py --rayhook $(release)/bin/rayhook --bin "$$bin" --tools "$$tools"

.PHONY: newest-test
newest-test: deps-test release-tests ## installation and example on the newest Kubernetes; 7 minutes more the first time
	@scripts/install-deps.sh e2e manifests
	@bin=$$(tests/e2e/binaries.sh --newest | tail -n 1) && tools=$$(tests/manifests/tools.sh | tail -n 1) && \
		$(python) tests/manifests/cluster_test.py --rayhook $(release)/bin/rayhook --bin "$$bin" --tools "$$tools" && \
		$(python) tests/e2e/e2e.py --rayhook $(release)/bin/rayhook --bin "$$bin"

SECONDS ?= 300
FUZZERS = $(patsubst tests/fuzz/%_fuzz.cpp,%,$(wildcard tests/fuzz/*_fuzz.cpp))
.PHONY: fuzz
fuzz: ## the fuzz programs, SECONDS=300 each; FUZZERS="shell pem": only these
	@scripts/install-deps.sh build test fuzz
	@$(MAKE) fuzz-tests
	@printf '%s\n' $(FUZZERS) | xargs -P $(jobs) -I{} tests/fuzz/run.sh {} $(SECONDS)

.PHONY: soak
soak: deps-test release-tests ## a million reviews and 100,000 reconnects: memory and descriptors come back
	@$(python) tests/server/soak.py --rayhook $(release)/bin/rayhook --load $(release)/bin/soak_load --long

.PHONY: bench
bench: deps-test ## how long one review takes in lib/
	@$(configure) --preset release -DRAYHOOK_TESTS=ON
	@$(call compile,$(release)) --target rayhook_bench
	@$(release)/bin/rayhook_bench

.PHONY: format
format: deps-test ## clang-format over all C++ files, in place
	@git ls-files -z --cached --others --exclude-standard -- '*.cpp' '*.hpp' | xargs -0 clang-format-19 -i

.PHONY: tidy
tidy: deps-test ## clang-tidy over what changed since it last passed
	@$(configure) --preset release -DRAYHOOK_TESTS=ON
	@$(python) tests/lint/tidy.py --build $(release) --jobs $(jobs)

.PHONY: clean
clean: ## removes build/; caches outside the repository stay
	@rm -rf build

.PHONY: deps-test release-tests
deps-test:
	@scripts/install-deps.sh build test
release-tests:
	@$(configure) --preset release -DRAYHOOK_TESTS=ON
	@$(call compile,$(release))

.PHONY: fuzz-tests
fuzz-tests:
	@$(configure) --preset fuzz
	@$(call compile,build/fuzz) --target fuzzers

.PHONY: asan-ubsan-tests tsan-tests
asan-ubsan-tests tsan-tests: %-tests:
	@$(configure) --preset $* -DRAYHOOK_TESTS=ON
	@$(call compile,build/$*) $(if $(filter tsan,$*),--target rayhook server_test)
