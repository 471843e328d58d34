#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# In the Dockerfile: compiles the program and lays out the image's root: the program, its loader and exactly the
# libraries that they need, the licences of the Debian packages these come from, and an SPDX list of them
# (/usr/share/sbom/rayhook.spdx.json). From the repository's root:
#   scripts/image-root.sh amd64|arm64 ROOT
# Reads the files' own tables, not ldd, so that it also works for another processor's program.
set -euo pipefail
export LC_ALL=C
architecture="$1" root="$2"
case "$architecture" in
amd64) triplet=x86_64-linux-gnu ;;
arm64) triplet=aarch64-linux-gnu ;;
*)
    echo "image-root: no image is made for '$architecture'; there are amd64 and arm64" >&2
    exit 2
    ;;
esac

# --- the program, without debugging information ----------------------------------------------------------------------
cross=()
if [[ "$architecture" != "$(dpkg --print-architecture)" ]]; then
    cross=("-DCMAKE_SYSTEM_NAME=Linux" "-DCMAKE_SYSTEM_PROCESSOR=${triplet%%-*}" "-DCMAKE_CXX_COMPILER=$triplet-g++"
        "-DCMAKE_LIBRARY_ARCHITECTURE=$triplet")
fi
cmake --log-level=WARNING --preset release -B build/image "${cross[@]}" -DRAYHOOK_TESTS=OFF
cmake --build build/image --target rayhook
program=build/image/rayhook
"$triplet-strip" -o "$program" build/image/bin/rayhook

# --- the tree --------------------------------------------------------------------------------------------------------
mkdir -p "$root"/usr/{bin,lib,share/{doc,sbom}} "$root/etc/rayhook/tls" "$root/usr/lib/$triplet"
ln -s usr/lib "$root/lib"
[[ "$architecture" != amd64 ]] || {
    mkdir -p "$root/usr/lib64"
    ln -s usr/lib64 "$root/lib64"
}
install -m 755 "$program" "$root/usr/bin/rayhook"

find_library() { # find_library NAME
    local folder
    for folder in "/usr/lib/$triplet" "/lib/$triplet" "/usr/$triplet/lib"; do
        if [[ -e "$folder/$1" ]]; then
            echo "$folder/$1"
            return
        fi
    done
    echo "image-root: $1 is needed and nowhere to be found" >&2
    return 1
}

# Each library once, and what it needs after it.
declare -A taken=()
packages=()
take() { # take FILE: what that file needs
    local name path package
    while read -r name; do
        [[ -z "${taken[$name]:-}" ]] || continue
        taken[$name]=1
        path="$(find_library "$name")"
        install -m 644 "$(readlink -f "$path")" "$root/usr/lib/$triplet/$name"
        # dpkg knows a file by the name it was packed under, which may be without /usr.
        package="$({ dpkg-query --search "$path" || dpkg-query --search "${path#/usr}" || dpkg-query --search "/usr$path"; } 2>/dev/null |
            head -n 1 | cut -d ' ' -f 1)"
        packages+=("${package%:}")
        take "$path"
    done < <(readelf --dynamic --wide "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
}
take "$program"
# The loader, which is one of them, is run where the program says.
loader="$(readelf --program-headers --wide "$program" | sed -n 's/.*interpreter: \(.*\)\]/\1/p')"
chmod 755 "$root/usr/lib/$triplet/${loader##*/}"
mkdir -p "$root${loader%/*}"
ln -s "/usr/lib/$triplet/${loader##*/}" "$root$loader"

mapfile -t packages < <(printf '%s\n' "${packages[@]}" | sort -u)
for package in "${packages[@]}"; do
    name="${package%%:*}"
    mkdir -p "$root/usr/share/doc/$name"
    cp -L "/usr/share/doc/$name/copyright" "$root/usr/share/doc/$name/"
done

# --- SPDX 2.3 ------------------------------------------------------------------------------------------------------
version="$(sed -n 's/.*kVersion = "\(.*\)".*/\1/p' lib/version.hpp)"
created="$(date --utc --date "@${SOURCE_DATE_EPOCH:-0}" +%Y-%m-%dT%H:%M:%SZ)"
sum="$(sha256sum "$program" | cut -d ' ' -f 1)"
id() { tr -c 'A-Za-z0-9.\n' - <<<"SPDXRef-$1"; }

package_entry() { # package_entry DEBIAN_NAME
    local name release source processor
    read -r name release source processor < <(dpkg-query --show --showformat '${Package} ${Version} ${source:Package} ${Architecture}\n' "$1")
    cat <<ENTRY
    { "SPDXID": "$(id "$name")", "name": "$name", "versionInfo": "$release", "supplier": "Organization: Debian",
      "sourceInfo": "built from Debian's source package $source", "downloadLocation": "NOASSERTION", "filesAnalyzed": false,
      "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION",
      "externalRefs": [{ "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
        "referenceLocator": "pkg:deb/debian/$name@$(sed 's/+/%2B/g; s/:/%3A/g' <<<"$release")?arch=$processor&distro=bookworm" }] }
ENTRY
}
# Of these only headers or archives go into the program.
mapfile -t headers < <(scripts/install-deps.sh --list "build:$architecture" | grep -E '^(lib|nlohmann|prometheus).*-dev(:|$)')
{
    cat <<HEAD
{
  "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": "rayhook-$version-$architecture",
  "documentNamespace": "https://spdx.org/spdxdocs/rayhook-$version-$architecture-$sum",
  "creationInfo": { "created": "$created", "creators": ["Tool: rayhook-image-root"] },
  "packages": [
    { "SPDXID": "SPDXRef-rayhook", "name": "rayhook", "versionInfo": "$version", "downloadLocation": "NOASSERTION",
      "filesAnalyzed": false, "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0",
      "copyrightText": "NOASSERTION", "checksums": [{ "algorithm": "SHA256", "checksumValue": "$sum" }] }
HEAD
    for package in "${packages[@]}" "${headers[@]}"; do
        echo ","
        package_entry "$package"
    done
    echo '  ], "relationships": ['
    echo '    { "spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-rayhook" }'
    for package in "${packages[@]}"; do
        echo "    , { \"spdxElementId\": \"SPDXRef-rayhook\", \"relationshipType\": \"DYNAMIC_LINK\", \"relatedSpdxElement\": \"$(id "${package%%:*}")\" }"
    done
    for package in "${headers[@]}"; do
        echo "    , { \"spdxElementId\": \"$(id "${package%%:*}")\", \"relationshipType\": \"BUILD_DEPENDENCY_OF\", \"relatedSpdxElement\": \"SPDXRef-rayhook\" }"
    done
    echo '  ] }'
} >"$root/usr/share/sbom/rayhook.spdx.json"

find "$root" -exec touch --no-dereference --date "@${SOURCE_DATE_EPOCH:-0}" {} +
