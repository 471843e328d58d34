#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs one fuzz program on its committed corpus and on what earlier runs here have found.
#   tests/fuzz/run.sh NAME SECONDS      once `make fuzz-tests` has built it; 0 seconds: the corpus only
# A fault ends with 1, and keeps the input.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

name="$1"
program="build/fuzz/bin/${name}_fuzz"
corpus="tests/fuzz/corpus/$name"
found="build/fuzz/found/$name"
mkdir -p "$found"
if [[ ! -x "$program" ]]; then
    echo "$program is not there: make fuzz-tests builds it" >&2
    exit 77
fi

options=(-timeout=20 -rss_limit_mb=1024 -max_len=4096 -verbosity=0 -print_final_stats=1 "-artifact_prefix=build/fuzz/$name-")
if [[ -f "tests/fuzz/$name.dict" ]]; then options+=("-dict=tests/fuzz/$name.dict"); fi
if [[ "$2" == 0 ]]; then options+=(-runs=0); else options+=("-max_total_time=$2"); fi

export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
export UBSAN_OPTIONS=print_stacktrace=1
if symbolizer=$(command -v llvm-symbolizer); then export ASAN_SYMBOLIZER_PATH=$symbolizer; fi
if ! "$program" "${options[@]}" "$found" "$corpus"; then
    echo "A fault. Mend it, and copy the input named above to $corpus/ under a name that says what was wrong." >&2
    exit 1
fi
