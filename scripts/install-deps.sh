#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs from Debian what is missing, and only that: a second run changes nothing and asks no network.
#   scripts/install-deps.sh [--list] [GROUP…]     no word: build; --list only says what a group needs
# Groups: build, demo, test, e2e, manifests, image, cluster, fuzz, outside, fresh; and build:ARCHITECTURE, to compile for another processor.
set -euo pipefail
export LC_ALL=C # sort and comm must agree

# Which release this is: Debian 12 keeps the Boost we need under a name with its version, Debian 13's own
# is new enough. The rest has the same name on both.
boost() {
    local codename
    # shellcheck source=/dev/null
    codename="$(. /etc/os-release && echo "${VERSION_CODENAME:-}")"
    if [[ "$codename" == bookworm ]]; then echo libboost1.81-dev; else echo libboost-dev; fi
}

packages() { # packages GROUP: one name a line
    case "$1" in
    build)
        printf '%s\n' g++ cmake ninja-build ccache "$(boost)" libssl-dev libsimdjson-dev nlohmann-json3-dev \
            libfmt-dev libspdlog-dev prometheus-cpp-dev libcli11-dev libyaml-dev
        ;;
    demo) printf '%s\n' curl python3 python3-yaml ;;
    test)
        printf '%s\n' libgtest-dev libgmock-dev libbenchmark-dev clang-format-19 clang-tidy-19 shellcheck \
            python3 python3-yaml python3-jsonschema jq openssl curl git dash util-linux
        ;;
    e2e) printf '%s\n' python3 python3-yaml jq openssl git ca-certificates ;;
    manifests) printf '%s\n' python3 python3-yaml python3-pip openssl git ca-certificates yamllint iproute2 util-linux ;;
    image) printf '%s\n' buildah debootstrap git util-linux ;;
    cluster)
        printf '%s\n' containernetworking-plugins iptables iproute2 util-linux mount kmod procps gcc libc6-dev \
            buildah debootstrap python3 python3-yaml jq openssl git
        ;;
    build:*)
        local other="${1#build:}" name
        if [[ "$other" == "$(dpkg --print-architecture)" ]]; then
            packages build
            return
        fi
        # The compiler runs here; libraries are the other processor's, but for those that are only headers.
        packages build | while read -r name; do
            case "$name" in
            g++) echo "crossbuild-essential-$other" ;;
            nlohmann-json3-dev | libcli11-dev | cmake | ninja-build | ccache) echo "$name" ;;
            *) echo "$name:$other" ;;
            esac
        done
        ;;
    fuzz) printf '%s\n' clang-19 libclang-rt-19-dev ;;
    outside) printf '%s\n' testssl.sh slowhttptest bsdextrautils bind9-dnsutils openssl python3 python3-pip ca-certificates ;;
    fresh) printf '%s\n' debootstrap git util-linux mount ;;
    *)
        echo "install-deps: no group is called '$1'; there are build, demo, test, e2e, manifests, image, cluster, fuzz, outside and fresh" >&2
        exit 2
        ;;
    esac
}

list=no
if [[ "${1:-}" == --list ]]; then
    list=yes
    shift
fi
wanted="$(for group in "${@:-build}"; do packages "$group"; done | sort -u)"
if [[ "$list" == yes ]]; then
    echo "$wanted"
    exit 0
fi

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    echo "install-deps: this system has no apt-get, so nothing is installed; what Debian calls these is needed:" >&2
    echo "$wanted" | tr '\n' ' ' >&2
    echo >&2
    exit 0
fi

# This machine's own by their names; all also as NAME:ARCHITECTURE.
installed="$(dpkg-query -W -f='${db:Status-Status} ${Architecture} ${Package}\n' | awk -v own="$(dpkg --print-architecture)" '
    $1 == "installed" { print $3 ":" $2; if ($2 == own || $2 == "all") print $3 }' | sort -u)"
mapfile -t missing < <(comm -23 <(echo "$wanted") <(echo "$installed"))
((${#missing[@]})) || exit 0

become=()
if [[ "$(id -u)" != 0 ]]; then
    if command -v sudo >/dev/null; then
        become=(sudo)
    else
        echo "install-deps: ${#missing[@]} packages are missing and there is no sudo; as root, run:" >&2
        echo "  apt-get install --no-install-recommends ${missing[*]}" >&2
        exit 1
    fi
fi

# Each new fifth of what apt-get tells by APT::Status-Fd is shown.
progress() {
    awk -F: '
        /^(dl|pm)status:/ {
            phase = $1 == "dlstatus" ? "downloading" : "unpacking"
            fifth = int($3 / 20)
            if (phase != last_phase || fifth > last) printf "install-deps: %s, %d %%\n", phase, fifth * 20
            last = fifth; last_phase = phase; fflush()
        }'
}

# What apt-get says goes to the log; how far it is, by descriptor 3, to stdout. (Both on one descriptor would
# not do: apt-get makes the status one non-blocking, and then packages' scripts fail to write to it. And sudo
# passes no descriptor on, so the redirection is made behind it.)
run_apt() {
    # shellcheck disable=SC2016 # expands in the inner shell
    "${become[@]}" env DEBIAN_FRONTEND=noninteractive bash -c \
        'log="$1"; shift; exec 3>&1 >>"$log" 2>&1; exec apt-get -q -o Dpkg::Use-Pty=0 -o APT::Status-Fd=3 "$@"' \
        bash "$log" "$@"
}

started=$SECONDS
echo "install-deps: installing ${#missing[@]} packages from Debian: ${missing[*]}"
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
for architecture in $(printf '%s\n' "${missing[@]}" | sed -n 's/.*://p' | sort -u); do
    "${become[@]}" dpkg --add-architecture "$architecture"
done
if ! run_apt update >/dev/null || ! run_apt install -y --no-install-recommends "${missing[@]}" | progress; then
    tail -n 15 "$log" >&2
    echo "install-deps: apt-get failed (its last lines are above)." >&2
    echo "  No network, or another apt at work? Run the same command again once that is mended." >&2
    echo "  A package that is not there: Rayhook builds on Debian 12 and 13." >&2
    exit 1
fi
echo "install-deps: done in $((SECONDS - started)) s"
