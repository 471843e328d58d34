#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs one entry of ctest. A test that cannot run here ends with 77 and says why: ctest calls it skipped,
# but where CI=true that is a failure.
#   launch.sh [--under asan-ubsan|tsan] [--with oracle|all] [--tools manifests|outside] COMMAND…
# --under: the options of that sanitizer; --with: appends `--bin DIR`, the Go-built programs (tests/e2e);
# --tools: appends `--tools DIR`, what tools.sh of that folder of tests/ gathers.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

skip() {
    if [[ "${CI:-}" == true ]]; then
        echo "CI skips nothing, but: $*" >&2
        exit 1
    fi
    echo "skipped: $*" >&2
    exit 77
}

before=()
after=()
while true; do
    case "${1:-}" in
    --under)
        # For the Python suites: all takes longer, and limits of address space are not for sanitizers.
        export RAYHOOK_SANITIZER="$2" RAYHOOK_TEST_PATIENCE="${RAYHOOK_TEST_PATIENCE:-4}"
        case "$2" in
        asan-ubsan)
            export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:check_initialization_order=1
            export UBSAN_OPTIONS=print_stacktrace=1
            ;;
        tsan)
            export TSAN_OPTIONS="suppressions=$here/tsan.supp halt_on_error=1 second_deadlock_stack=1"
            # Kernels that spread addresses widely leave no room where g++ 12's ThreadSanitizer wants its own.
            if setarch -R true 2>/dev/null; then before=(setarch -R); fi
            ;;
        esac
        shift 2
        ;;
    --with)
        only=()
        [[ "$2" == all ]] || only=(--only "$2")
        bin="$("$here/e2e/binaries.sh" "${only[@]}" | tail -n 1)" ||
            skip "the programs that the test needs could not be built (see above): it takes Go modules and a network"
        after+=(--bin "$bin")
        shift 2
        ;;
    --tools)
        tools="$("$here/$2/tools.sh" | tail -n 1)" ||
            skip "the tools that the test needs could not be had (see above): it takes Go modules, PyPI and Debian"
        after+=(--tools "$tools")
        shift 2
        ;;
    *) break ;;
    esac
done

code=0
"${before[@]}" "$@" "${after[@]}" || code=$?
[[ "$code" != 77 ]] || skip "$1"
exit "$code"
