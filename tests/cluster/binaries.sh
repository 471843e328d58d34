#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a node needs beside tests/e2e/binaries.sh's control plane: kubelet, kube-proxy, kube-scheduler and CoreDNS (Go
# modules), containerd and runc (Debian's packages, unpacked and not installed, since installing starts a daemon), and
# the pause program (C). Once, into a cache outside the repository.
# Progress goes to stderr; the last line on stdout is the directory that holds the programs.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
cache="${RAYHOOK_CACHE:-$HOME/.cache/rayhook}"

say() { printf '[node %4ds] %s\n' "$SECONDS" "$*" >&2; }

# shellcheck source=tests/e2e/go-toolchain.sh
source "$here/../e2e/go-toolchain.sh"

version="$(sed -n 's|^\tk8s.io/kubernetes \(v[0-9.]*\).*|\1|p' "$here/go/node/go.mod")"
IFS=. read -r major minor _ <<<"${version#v}"
stamp=k8s.io/component-base/version
flags=(-mod=readonly -trimpath -buildvcs=false
    -ldflags "-s -w -X $stamp.gitVersion=$version -X $stamp.gitMajor=$major -X $stamp.gitMinor=$minor -X $stamp.gitTreeState=clean")
export CGO_ENABLED=0
unset GOFLAGS

dir="$cache/node-$({ cat "$here"/go/*/go.{mod,sum} "$here"/pause.c && echo "${flags[*]}"; } | sha256sum | cut -c1-16)"
mkdir -p "$dir"
exec 9>"$dir/.lock"
flock 9

build() { # build MODULE PACKAGE
    local name="${2##*/}"
    [[ -x "$dir/$name" ]] && return
    need_go "$cache"
    say "building $name ($2)"
    (cd "$here/go/$1" && nice go build "${flags[@]}" -o "$dir/$name.new" "$2" >&2)
    mv "$dir/$name.new" "$dir/$name"
}

if [[ ! -x "$dir/containerd" ]]; then
    say "unpacking Debian's containerd and runc"
    rm -rf "$dir/debian"
    mkdir -p "$dir/debian"
    # As root apt drops its rights for a download, and would complain that it may not write here.
    (cd "$dir/debian" && apt-get -q -o APT::Sandbox::User="$(id -un)" download containerd runc >&2)
    for package in "$dir"/debian/*.deb; do dpkg-deb --extract "$package" "$dir/debian"; done
    find "$dir/debian" -type f \( -name runc -o -name ctr -o -name 'containerd*' \) -perm -u+x -exec cp {} "$dir/" \;
    rm -rf "$dir/debian"
fi
[[ -x "$dir/pause" ]] || cc -Os -static -o "$dir/pause" "$here/pause.c"
build node k8s.io/kubernetes/cmd/kube-scheduler
build node k8s.io/kubernetes/cmd/kube-proxy
build node k8s.io/kubernetes/cmd/kubelet
build coredns github.com/coredns/coredns
say "all there: $dir"
echo "$dir"
