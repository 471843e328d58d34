#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the image of the Dockerfile with buildah, as root, without an image from elsewhere: the Debian that it is
# built on is made here by debootstrap. The same sources and the same Debian packages give the same digest.
#   scripts/image.sh [--architecture amd64|arm64] [--again]     --again: compiles everything, also what is cached
# Leaves in build/image/: rayhook-VERSION-ARCH.tar (docker load, podman load, ctr images import, skopeo copy),
# its digest in ….digest, and the SPDX list of what is inside in ….spdx.json.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

arguments=("$@")
architecture=amd64
again=no
while (($#)); do
    case "$1" in
    --architecture)
        architecture="${2:?--architecture: which?}"
        shift
        ;;
    --again) again="$(date +%s%N)" ;;
    *)
        echo "usage: scripts/image.sh [--architecture amd64|arm64] [--again]" >&2
        exit 2
        ;;
    esac
    shift
done

say() { printf '[image %4ds] %s\n' "$SECONDS" "$*" >&2; }
if [[ "$(id -u)" != 0 ]]; then
    echo "image: buildah and debootstrap need root here" >&2
    exit 77
fi
scripts/install-deps.sh image >&2
# buildah's mounts are made in a namespace of their own, so that none outlives this script, however it ends.
if [[ "${RAYHOOK_IMAGE_INSIDE:-}" != yes ]]; then
    RAYHOOK_IMAGE_INSIDE=yes exec unshare --mount --propagation private "$PWD/scripts/image.sh" "${arguments[@]}"
fi

cache="${RAYHOOK_CACHE:-$HOME/.cache/rayhook}/image"
mkdir -p "$cache" build/image
exec 9>"$cache/.lock"
flock 9
export BUILDAH_ISOLATION=chroot STORAGE_DRIVER=overlay
store=(--root "$cache/storage" --runroot "$cache/run")
release=bookworm
base="debian:$release-slim"
# Layers of earlier builds are what makes the next one quick; but they pile up.
if [[ -d "$cache/storage" ]] && (($(du -sm "$cache/storage" | cut -f1) > 10000)); then
    say "the layers kept in $cache/storage are over 10 GB: beginning anew"
    rm -rf --one-file-system "$cache/storage" "$cache/run"
fi
buildah "${store[@]}" rm --all >/dev/null # what an earlier run that was killed left

if ! buildah "${store[@]}" inspect --type image "$base" >/dev/null 2>&1; then
    say "making $base (about a minute; kept for the next time)"
    # shellcheck source=scripts/debian-tree.sh
    source scripts/debian-tree.sh
    tree="$cache/tree"
    rm -rf --one-file-system "$tree"
    mkdir -p "${cache%/*}/fresh" # shared with tests/fresh
    bare_tree "$release" "$tree" "${cache%/*}/fresh"
    apt_as_here "$release" "$tree"
    container="$(buildah "${store[@]}" from scratch)"
    buildah "${store[@]}" add --quiet "$container" "$tree" / >/dev/null
    buildah "${store[@]}" commit --quiet --rm "$container" "$base" >/dev/null
    rm -rf --one-file-system "$tree"
fi

version="$(sed -n 's/.*kVersion = "\(.*\)".*/\1/p' lib/version.hpp)"
epoch="$(git log -1 --format=%ct)"
name="rayhook-$version-$architecture"
volumes=()
if [[ "$again" == no ]]; then
    mkdir -p "$cache/ccache"
    volumes=(--volume "$cache/ccache:/ccache")
fi
say "building rayhook:$version for $architecture"
buildah "${store[@]}" bud --quiet --pull-never --layers "${volumes[@]}" --platform "linux/$architecture" --timestamp "$epoch" \
    --build-arg "BUILDPLATFORM=linux/$(dpkg --print-architecture)" --build-arg "SOURCE_DATE_EPOCH=$epoch" \
    --build-arg "AGAIN=$again" --build-arg "VERSION=$version" --build-arg "REVISION=$(git rev-parse HEAD)" \
    --tag "localhost/rayhook:$version-$architecture" --file Dockerfile . >"$cache/$name.log" 2>&1 || {
    tail -n 40 "$cache/$name.log" >&2
    echo "image: the build failed; all of it: $cache/$name.log" >&2
    exit 1
}

rm -f "build/image/$name.tar"
buildah "${store[@]}" push --quiet --digestfile "build/image/$name.digest" \
    "localhost/rayhook:$version-$architecture" "docker-archive:build/image/$name.tar:rayhook:$version"
container="$(buildah "${store[@]}" from --pull-never "localhost/rayhook:$version-$architecture")"
mounted="$(buildah "${store[@]}" mount "$container")"
cp "$mounted/usr/share/sbom/rayhook.spdx.json" "build/image/$name.spdx.json"
size="$(du -sk --apparent-size "$mounted" | cut -f1)"
buildah "${store[@]}" rm "$container" >/dev/null
say "$(cat "build/image/$name.digest"), $size KiB: build/image/$name.tar"
