#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sourced: a bare Debian in a folder, whose apt gets its packages from where this machine's own does. Needs root.

readonly KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

# apt itself knows, whatever form its sources have: an archive's address with a main component.
apt_sites() { # apt_sites AWK_CONDITION, where $1 is a release's name
    # shellcheck disable=SC2016 # these are apt's own placeholders
    apt-get indextargets --format '$(CREATED_BY) $(COMPONENT) $(RELEASE) $(SITE)' 2>/dev/null |
        awk "\$1 == \"Packages\" && \$2 == \"main\" && \$3 $1 { print \$4; exit }"
}

# Makes the tree by debootstrap, or takes it from an earlier time.
bare_tree() { # bare_tree RELEASE TREE CACHE
    local release="$1" tree="$2" cache="$3" script="$1" mirror log
    local bare="$cache/$release-minbase.tar"
    mirror="$(apt_sites '!~ /-/')"
    if [[ -z "$mirror" ]]; then
        echo "debian-tree: this machine's apt knows no archive with a component main (is it a Debian?)" >&2
        return 1
    fi
    mkdir -p "$tree"
    if [[ ! -s "$bare" ]]; then
        log="$cache/$release-debootstrap.log"
        [[ -e "/usr/share/debootstrap/scripts/$release" ]] || script=sid # older debootstrap, newer Debian
        debootstrap --variant=minbase "--keyring=$KEYRING" "$release" "$tree" "$mirror" \
            "/usr/share/debootstrap/scripts/$script" >"$log" 2>&1 || {
            tail -n 15 "$log" >&2
            echo "debian-tree: debootstrap failed; all of it: $log" >&2
            return 1
        }
        rm -f "$tree"/var/cache/apt/archives/*.deb
        tar -C "$tree" --one-file-system -cf "$bare.$$" .
        mv "$bare.$$" "$bare"
        rm -rf --one-file-system "$tree"
        mkdir -p "$tree"
    fi
    tar -C "$tree" -xf "$bare"
}

# apt inside as outside: sources of that Debian, proxies, certificates.
apt_as_here() { # apt_as_here RELEASE TREE
    local release="$1" tree="$2" mirror security setting
    mirror="$(apt_sites '!~ /-/')"
    security="$(apt_sites '~ /-security$/')"
    rm -f "$tree"/etc/apt/sources.list "$tree"/etc/apt/sources.list.d/*
    {
        echo "deb [signed-by=$KEYRING] $mirror $release main"
        echo "deb [signed-by=$KEYRING] $mirror $release-updates main"
        [[ -z "$security" ]] || echo "deb [signed-by=$KEYRING] $security $release-security main"
    } >"$tree/etc/apt/sources.list"
    for setting in /etc/apt/apt.conf /etc/apt/apt.conf.d/* /etc/apt/auth.conf /etc/apt/auth.conf.d/*; do
        # Only what concerns the network: hooks of packages that are not in there would break it.
        if [[ -f "$setting" ]] && grep -qiE 'proxy|acquire::(http|https)|verify-peer|machine ' "$setting"; then
            install -D "$setting" "$tree$setting"
        fi
    done
    cp /etc/resolv.conf "$tree/etc/resolv.conf"
    [[ ! -f /etc/hosts ]] || cp /etc/hosts "$tree/etc/hosts"
    # Certificates that apt trusts here, also where the archive is behind a private CA.
    if [[ -d /etc/ssl/certs ]]; then
        mkdir -p "$tree/etc/ssl/certs"
        [[ ! -s /etc/ssl/certs/ca-certificates.crt ]] ||
            cp -L /etc/ssl/certs/ca-certificates.crt "$tree/etc/ssl/certs/ca-certificates.crt"
    fi
}
