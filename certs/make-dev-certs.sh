#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A certificate for development: a CA made on the spot and a server certificate for this machine by it.
#   certs/make-dev-certs.sh DIR [NAME…]
# DIR gets ca.crt, tls.crt and tls.key (0600). NAMEs are further DNS names, as rayhook.rayhook.svc.
# What is there already stays if it is for the same names and good for another day. The CA's key is
# thrown away, so that nobody can make a second certificate which those who trust ca.crt would take.
set -euo pipefail

if (($# < 1)) || [[ "$1" == -* ]]; then
    echo "usage: certs/make-dev-certs.sh DIR [NAME…]" >&2
    exit 2
fi
dir="$1"
shift
names="DNS:localhost,IP:127.0.0.1,IP:::1"
for name in "$@"; do
    if [[ ! "$name" =~ ^[a-zA-Z0-9*]([a-zA-Z0-9.-]*[a-zA-Z0-9])?$ ]]; then
        echo "make-dev-certs: '$name' is no DNS name" >&2
        exit 2
    fi
    names+=",DNS:$name"
done
command -v openssl >/dev/null || {
    echo "make-dev-certs: openssl is missing; scripts/install-deps.sh demo installs it" >&2
    exit 1
}

umask 077
mkdir -p "$dir"
if [[ "$(cat "$dir/names" 2>/dev/null)" == "$names" && -s "$dir/tls.key" && -s "$dir/ca.crt" ]] &&
    openssl x509 -in "$dir/tls.crt" -noout -checkend 86400 >/dev/null 2>&1; then
    exit 0
fi

work="$(mktemp -d "$dir/.new.XXXXXX")"
trap 'rm -rf "$work"' EXIT
quiet() { # openssl chats on stderr: show it only if it failed
    if ! "$@" 2>"$work/errors"; then
        cat "$work/errors" >&2
        echo "make-dev-certs: this failed: $*" >&2
        exit 1
    fi
}
days=90
curve=(-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -sha256 -nodes)
quiet openssl req -x509 "${curve[@]}" -days $days -subj "/CN=Rayhook development CA" \
    -addext "basicConstraints=critical,CA:TRUE,pathlen:0" -addext "keyUsage=critical,keyCertSign,cRLSign" \
    -keyout "$work/ca.key" -out "$work/ca.crt"
quiet openssl req -new "${curve[@]}" -subj "/CN=rayhook" -keyout "$work/tls.key" -out "$work/tls.csr"
cat >"$work/extensions" <<END
basicConstraints=critical,CA:FALSE
keyUsage=critical,digitalSignature
extendedKeyUsage=serverAuth
subjectAltName=$names
authorityKeyIdentifier=keyid
END
quiet openssl x509 -req -in "$work/tls.csr" -CA "$work/ca.crt" -CAkey "$work/ca.key" -CAcreateserial -sha256 \
    -days $days -extfile "$work/extensions" -out "$work/tls.crt"
quiet openssl verify -CAfile "$work/ca.crt" "$work/tls.crt" >/dev/null
mv "$work/ca.crt" "$work/tls.crt" "$work/tls.key" "$dir/"
echo "$names" >"$dir/names"
