#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What tests/outside needs besides Debian packages: h2spec (a Go module), boofuzz and tlslite-ng (PyPI). Once, into a cache
# outside the repository. Progress goes to stderr; the last line on stdout is the directory: bin/ and python/.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
cache="${RAYHOOK_CACHE:-$HOME/.cache/rayhook}"
from_pypi=(boofuzz==0.4.2 tlslite-ng==0.8.2)

say() { printf '[tools %4ds] %s\n' "$SECONDS" "$*" >&2; }

# shellcheck source=tests/e2e/go-toolchain.sh
source "$here/../e2e/go-toolchain.sh"

dir="$cache/outside-$({ cat "$here"/go/h2spec/go.{mod,sum} && echo "${from_pypi[@]}"; } | sha256sum | cut -c1-16)"
mkdir -p "$dir/bin"
exec 9>"$dir/.lock"
flock 9

if [[ ! -x "$dir/bin/h2spec" ]]; then
    need_go "$cache"
    say "building h2spec"
    (cd "$here/go/h2spec" && CGO_ENABLED=0 nice go build -mod=readonly -trimpath -buildvcs=false -ldflags "-s -w" \
        -o "$dir/bin/h2spec.new" github.com/summerwind/h2spec/cmd/h2spec >&2)
    mv "$dir/bin/h2spec.new" "$dir/bin/h2spec"
fi
if [[ ! -d "$dir/python" ]]; then
    say "taking ${from_pypi[*]} by pip"
    rm -rf "$dir/python.new"
    nice python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-cache-dir \
        --target "$dir/python.new" "${from_pypi[@]}" >&2
    mv "$dir/python.new" "$dir/python"
fi
say "all there: $dir"
echo "$dir"
