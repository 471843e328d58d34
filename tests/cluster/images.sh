#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The images of the pods: Ray as rayproject/ray:2.7.2, built on a Debian made here (debootstrap, pip, buildah), and pause.
# Once, into a cache outside the repository; needs root. Nothing is pulled from a registry of images.
#   images.sh PAUSE       the pause program of binaries.sh
# Progress goes to stderr; the last line on stdout is the directory that holds ray.tar and pause.tar (ctr images import).
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
cache="${RAYHOOK_CACHE:-$HOME/.cache/rayhook}"
pause="${1:?images.sh PAUSE}"
release=bookworm
# 2.7.2 runs on this Debian's Python and still asks any node's agent to run a job. The others are the last that it works with.
ray=('ray[default]==2.7.2' 'pydantic<2' 'numpy<2' 'protobuf<5' 'setuptools<70' async_timeout)

say() { printf '[images %4ds] %s\n' "$SECONDS" "$*" >&2; }

dir="$cache/images-$(cat "${BASH_SOURCE[0]}" "$here/pause.c" | sha256sum | cut -c1-16)"
mkdir -p "$dir" "$cache/fresh"
exec 9>"$dir/.lock"
flock 9
if [[ -s "$dir/ray.tar" && -s "$dir/pause.tar" ]]; then
    say "all there: $dir"
    echo "$dir"
    exit
fi
# buildah's mounts are made in a namespace of their own, so that none outlives this script, however it ends.
if [[ "${RAYHOOK_IMAGES_INSIDE:-}" != yes ]]; then
    exec 9>&-
    RAYHOOK_IMAGES_INSIDE=yes exec unshare --mount --propagation private "${BASH_SOURCE[0]}" "$@"
fi

work="$dir/work"
rm -rf --one-file-system "$work" # of a run that was killed
mkdir -p "$work"
trap 'rm -rf --one-file-system "$work"' EXIT
tree="$work/tree" log="$dir/log"
# shellcheck source=scripts/debian-tree.sh
source "$here/../../scripts/debian-tree.sh"

say "a bare Debian"
bare_tree "$release" "$tree" "$cache/fresh"
apt_as_here "$release" "$tree"
mount -t proc proc "$tree/proc"
mount -t tmpfs tmpfs "$tree/dev"
for device in null zero random urandom; do
    : >"$tree/dev/$device"
    mount --bind "/dev/$device" "$tree/dev/$device"
done
within() { chroot "$tree" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "${pip_settings[@]}" "$@" >>"$log" 2>&1; }
failed() {
    tail -n 20 "$log" >&2
    echo "images: $*; all of it: $log" >&2
    exit 1
}
# pip inside as outside.
mapfile -t pip_settings < <(env | grep -E '^(PIP_|https?_proxy=|HTTPS?_PROXY=|no_proxy=|NO_PROXY=)' | grep -v '^PIP_FIND_LINKS=' || true)
for file in /etc/pip.conf "$HOME/.config/pip/pip.conf" "$HOME/.pip/pip.conf"; do
    [[ ! -f "$file" ]] || cat "$file" >>"$tree/etc/pip.conf"
done
: >"$log"
say "Python and tools (log: $log)"
# wget is what KubeRay's probes call.
within apt-get -q update || failed "apt-get failed"
within apt-get -q install -y --no-install-recommends python3 python3-pip bash procps wget || failed "apt-get failed"
# Installing ca-certificates has just put Debian's own list in the place of what is trusted here.
[[ ! -s /etc/ssl/certs/ca-certificates.crt ]] || cp -L /etc/ssl/certs/ca-certificates.crt "$tree/etc/ssl/certs/ca-certificates.crt"
say "${ray[*]}"
within python3 -m pip install --no-cache-dir --no-compile --break-system-packages --root-user-action=ignore "${ray[@]}" || failed "pip failed"
umount -R "$tree/dev" "$tree/proc"

# What no pod here needs.
packages="$(echo "$tree"/usr/local/lib/python3*/dist-packages)"
rm -rf "$packages"/ray/{jars,cpp,rllib} "$tree"/usr/share/{doc,man,locale} "$tree"/var/{cache/apt,lib/apt/lists} "$tree/etc/apt" "$tree/etc/pip.conf"
ln -sf python3 "$tree/usr/bin/python"
: >"$tree/etc/resolv.conf"
# Compiled once here, not by each pod.
chroot "$tree" python3 -m compileall -q -j 2 "/${packages#"$tree"/}" >>"$log" 2>&1 || true
say "image of $(du -sm "$tree" | cut -f1) MB"

export BUILDAH_ISOLATION=chroot STORAGE_DRIVER=overlay
store=(--root "$work/storage" --runroot "$work/run")
image() { # image NAME FILES ENTRYPOINT FILE
    local container
    container="$(buildah "${store[@]}" from scratch)"
    buildah "${store[@]}" add --quiet "$container" "$2" / >/dev/null
    buildah "${store[@]}" config --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin --entrypoint "$3" "$container"
    buildah "${store[@]}" commit --quiet --rm "$container" "$1" >/dev/null
    buildah "${store[@]}" push --quiet "$1" "docker-archive:$work/$4:$1"
    mv "$work/$4" "$dir/$4"
}
image docker.io/rayproject/ray:2.7.2 "$tree" '[]' ray.tar
image localhost/pause:1 "$pause" '["/pause"]' pause.tar
say "all there: $dir ($(du -m "$dir/ray.tar" | cut -f1) MB)"
echo "$dir"
