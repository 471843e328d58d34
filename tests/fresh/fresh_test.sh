#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `make demo`, twice, on a bare Debian: a debootstrap tree in a chroot, and a clone of HEAD in it without build
# products. So no install step can be missing, whatever this machine has.
#   DEBIAN=bookworm (default) | trixie
#   --ccache   compiled objects are kept for the next time, so that the figure at the end is no newcomer's
# Packages come from where this machine's own apt gets them. The bare tree and the packages are kept in
# ${RAYHOOK_CACHE:-~/.cache/rayhook}/fresh; all else is unmounted and removed at the end, however it ends.
set -euo pipefail

debian="${DEBIAN:-bookworm}"
cache="${RAYHOOK_CACHE:-$HOME/.cache/rayhook}/fresh"
work="$cache/work"
tree="$work/tree"
source="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"

say() { printf '[fresh %s %4d s] %s\n' "$debian" "$SECONDS" "$*"; }
skip() {
    echo "fresh: cannot run here: $*" >&2
    exit 77
}

# Everything happens in namespaces of its own: whatever is mounted there is unseen from outside, and when the
# inner script ends or is ended, all its processes and mounts are gone. What is left to do is to remove files.
ccache=no
[[ " $* " != *" --ccache "* ]] || ccache=yes

if [[ "${1:-}" != --inside ]]; then
    case "$debian" in
    bookworm | trixie) ;;
    *)
        echo "fresh: DEBIAN=$debian is not known; bookworm (12) or trixie (13)" >&2
        exit 2
        ;;
    esac
    [[ "$(id -u)" == 0 ]] || skip "it takes root (debootstrap, chroot)"
    command -v debootstrap >/dev/null || skip "debootstrap is missing: scripts/install-deps.sh fresh"
    namespaces=(unshare --mount --propagation private --pid --fork --kill-child --mount-proc)
    "${namespaces[@]}" true 2>/dev/null || skip "namespaces are not allowed here (${namespaces[*]})"

    mkdir -p "$cache"
    exec 9>"$cache/.lock"
    flock -n 9 || {
        say "another run is under way; waiting for it"
        flock 9
    }
    rm -rf --one-file-system "$work" # of a run that was killed
    mkdir -p "$work"
    "${namespaces[@]}" "$0" --inside "$@" 9>&- &
    inner=$!
    trap 'kill -KILL "$inner" 2>/dev/null || true; wait "$inner" || true; rm -rf --one-file-system "$work"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    code=0
    wait "$inner" || code=$?
    exit "$code"
fi

# --- a bare tree, from the cache if it is there; its apt as this machine's ---------------------------------------
# shellcheck source=scripts/debian-tree.sh
source "$source/scripts/debian-tree.sh"
[[ -n "$(apt_sites '!~ /-/')" ]] || skip "this machine's apt knows no archive with a component main (is it a Debian?)"
[[ -s "$cache/$debian-minbase.tar" ]] || say "making a bare tree by debootstrap (about a minute; kept for the next time)"
bare_tree "$debian" "$tree" "$cache"
say "bare tree: $(du -sm "$tree" | cut -f1) MB, $(find "$tree/var/lib/dpkg/info" -name '*.list' | wc -l) packages"

apt_as_here "$debian" "$tree"

mount -t proc proc "$tree/proc"
mount --rbind /sys "$tree/sys"
mount --make-rslave "$tree/sys"
mount -t tmpfs -o mode=755 tmpfs "$tree/dev"
for device in null zero full random urandom tty; do
    : >"$tree/dev/$device"
    mount --bind "/dev/$device" "$tree/dev/$device"
done
ln -s /proc/self/fd "$tree/dev/fd"
mkdir -p "$tree/dev/shm"
mount -t tmpfs tmpfs "$tree/dev/shm"
# Downloaded packages outlive the tree: the next run fetches nothing.
mkdir -p "$cache/$debian-archives/partial"
mount --bind "$cache/$debian-archives" "$tree/var/cache/apt/archives"
if [[ "$ccache" == yes ]]; then
    mkdir -p "$cache/$debian-ccache" "$tree/root/.cache/ccache"
    mount --bind "$cache/$debian-ccache" "$tree/root/.cache/ccache"
fi
rm -f "$tree/etc/apt/apt.conf.d/docker-clean"
echo 'APT::Keep-Downloaded-Packages "true"; Binary::apt-get::APT::Keep-Downloaded-Packages "true";' \
    >"$tree/etc/apt/apt.conf.d/99keep"

# --- a clone of HEAD, by which no file that git does not know can slip in -----------------------------------------
mkdir -p "$tree/src"
git -c safe.directory='*' -C "$source" archive HEAD | tar -C "$tree/src" -xf -
[[ -z "$(git -c safe.directory='*' -C "$source" status --porcelain --untracked-files=no)" ]] ||
    say "mind: there are changes here that are not committed, and so not tested"

inside() { # a clean environment, as of a first login; proxies are the one thing handed on
    local proxies=()
    local name
    for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
        [[ -z "${!name:-}" ]] || proxies+=("$name=${!name}")
    done
    env -i "${proxies[@]}" HOME=/root TERM=dumb LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin \
        chroot "$tree" /bin/bash -euo pipefail -c "$1"
}

# The README asks for `make` (and git, to get the sources): the only thing that is installed beforehand.
say "installing make, which the README asks for"
inside 'apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends make' \
    >"$work/make.log" 2>&1 || {
    tail -n 20 "$work/make.log" >&2
    echo "fresh: apt-get does not work inside the tree (its last lines are above)" >&2
    exit 1
}

problems=0
wrong() {
    echo "fresh: $*" >&2
    problems=1
}
demo() { # demo WHICH: runs it, shows it, checks what it says
    local out="$work/demo-$1.log" started=$SECONDS code=0
    say "make demo, the $1 time"
    inside 'cd /src && make demo' 2>&1 | tee "$out" || code=$?
    taken=$((SECONDS - started))
    ((code == 0)) || wrong "make demo, the $1 time: exit code $code"
    grep -q -- '+.*--address=service-ray-cluster:6380' "$out" || wrong "the $1 demo does not show the rewritten address"
    grep -q -- '+.*clusterIP: None' "$out" || wrong "the $1 demo does not show the headless Service"
    grep -q '"msg":"decision"' "$out" || wrong "the $1 demo shows no line of the log"
    grep -q $'\e' "$out" && wrong "the $1 demo has colour, which belongs on terminals only"
    return 0
}
demo first
first=$taken
demo second
second=$taken
grep -q 'install-deps: installing' "$work/demo-second.log" && wrong "the second demo installed packages again"
[[ -z "$(find /proc -maxdepth 2 -name exe -lname '*/rayhook' 2>/dev/null)" ]] ||
    wrong "a rayhook was left running"

aim="240 s is the aim"
[[ "$ccache" == no ]] || aim="compiled objects were kept"
say "first demo: $first s ($aim), second: $second s (10 s)"
exit "$problems"
