#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# In the Dockerfile: compiles the program for an architecture by Debian's name of it (amd64, arm64) and leaves it
# at build/image/rayhook, without debugging information.
#   scripts/image-program.sh ARCHITECTURE
set -euo pipefail
architecture="$1"
triplet="$(dpkg-architecture --host-arch "$architecture" --query DEB_HOST_GNU_TYPE)"

cross=()
strip=strip
if [[ "$architecture" != "$(dpkg --print-architecture)" ]]; then
    strip="$triplet-strip"
    cross=("-DCMAKE_SYSTEM_NAME=Linux" "-DCMAKE_SYSTEM_PROCESSOR=${triplet%%-*}" "-DCMAKE_CXX_COMPILER=$triplet-g++"
        "-DCMAKE_LIBRARY_ARCHITECTURE=$triplet")
fi
cmake --log-level=WARNING --preset release -B build/image "${cross[@]}" -DRAYHOOK_TESTS=OFF
cmake --build build/image --target rayhook
"$strip" -o build/image/rayhook build/image/bin/rayhook
