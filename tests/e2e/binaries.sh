#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds what the oracles and the e2e tests need (kube-apiserver, kube-controller-manager, kubectl, etcd,
# KubeRay's operator and our own `oracle`) from the Go module proxy, once, into a cache outside the repository.
# Progress goes to stderr; the last line on stdout is the directory that holds the programs.
#   binaries.sh [--only oracle]     with --only, no more than the oracle
#   binaries.sh --newest            a directory in which API server and controllers are the newest Kubernetes' instead
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
cache="${RAYHOOK_CACHE:-$HOME/.cache/rayhook}"

say() { printf '[binaries %4ds] %s\n' "$SECONDS" "$*" >&2; }

# shellcheck source=tests/e2e/go-toolchain.sh
source "$here/go-toolchain.sh"

only=""
newest=no
case "$*" in
"") ;;
"--only oracle") only=oracle ;;
"--newest") newest=yes ;;
*)
    echo "usage: binaries.sh [--only oracle | --newest]" >&2
    exit 2
    ;;
esac

flags_of() { # flags_of MODULE: sets `flags`, with the Kubernetes version of its go.mod
    local version major minor stamp=k8s.io/component-base/version
    version="$(sed -n 's|^\tk8s.io/kubernetes \(v[0-9.]*\).*|\1|p' "$here/go/$1/go.mod")"
    IFS=. read -r major minor _ <<<"${version#v}"
    flags=(-mod=readonly -trimpath -buildvcs=false
        -ldflags "-s -w -X $stamp.gitVersion=$version -X $stamp.gitMajor=$major -X $stamp.gitMinor=$minor -X $stamp.gitTreeState=clean")
}
flags_of kubernetes
export CGO_ENABLED=0
unset GOFLAGS

# One directory per control plane and flags; what changes more often carries its own sum in its name: the oracle
# that of its source, each KubeRay operator that of its modules.
sum() { sha256sum | cut -c1-16; }
dir="$cache/bin-$({ cat "$here"/go/{etcd,kubernetes}/go.mod "$here"/go/{etcd,kubernetes}/go.sum && echo "${flags[*]}"; } | sum)"
oracle="oracle-$(cat "$here"/go/kubernetes/oracle/*.go | sum)"
mkdir -p "$dir"

# Two test runs at once must not build the same thing twice.
exec 9>"$dir/.lock"
flock 9

build() { # build MODULE PACKAGE NAME
    [[ -x "$dir/$3" ]] && return
    need_go "$cache"
    say "building $3 ($2)"
    (cd "$here/go/$1" && nice go build "${flags[@]}" -o "$dir/$3.new" "$2" >&2)
    mv "$dir/$3.new" "$dir/$3"
    say "built $3, $(du -m "$dir/$3" | cut -f1) MB"
}

build kubernetes ./oracle "$oracle"
ln -sfn "$oracle" "$dir/oracle"
kuberay() { # kuberay VERSION: kuberay-VERSION, and its CustomResourceDefinitions in kuberay-VERSION-crds/
    local module="$here/go/kuberay-$1" name package=github.com/ray-project/kuberay/ray-operator
    name="kuberay-$1-$(cat "$module/go.mod" "$module/go.sum" | sum)"
    build "kuberay-$1" "$package" "$name"
    ln -sfn "$name" "$dir/kuberay-$1"
    [[ -d "$dir/$name-crds" ]] && return
    need_go "$cache"
    mkdir -p "$dir/$name-crds.new"
    cp "$(cd "$module" && go list -m -f '{{.Dir}}' "$package")"/config/crd/bases/*.yaml "$dir/$name-crds.new"
    mv "$dir/$name-crds.new" "$dir/$name-crds"
    ln -sfn "$name-crds" "$dir/kuberay-$1-crds"
}

if [[ -z "$only" ]]; then
    build etcd go.etcd.io/etcd/server/v3 etcd
    build kubernetes k8s.io/kubernetes/cmd/kube-apiserver kube-apiserver
    build kubernetes k8s.io/kubernetes/cmd/kube-controller-manager kube-controller-manager
    build kubernetes k8s.io/kubernetes/cmd/kubectl kubectl
    kuberay 1.4.0
    kuberay 1.5.0
fi
if [[ "$newest" == yes ]]; then
    flags_of kubernetes-newest
    older="$dir"
    dir="$cache/bin-newest-$(cat "$here"/go/kubernetes-newest/go.{mod,sum} | sum)"
    mkdir -p "$dir"
    build kubernetes-newest k8s.io/kubernetes/cmd/kube-apiserver kube-apiserver
    build kubernetes-newest k8s.io/kubernetes/cmd/kube-controller-manager kube-controller-manager
    for program in etcd kubectl; do ln -sfn "$older/$program" "$dir/$program"; done
fi
say "all there: $dir"
echo "$dir"
