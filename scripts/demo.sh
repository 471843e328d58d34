#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `make demo`: installs what is missing, builds, starts the webhook on loopback and sends it the objects of
# examples/static-ray-cluster.yaml, as the API server would. Shows before and after, and the log.
# Ends with 0 only if the answers are the right ones.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

example=examples/static-ray-cluster.yaml
dir=build/demo
log="$dir/server.log"
bold="" plain="" red=""
if [[ -t 1 && "${TERM:-dumb}" != dumb && -z "${NO_COLOR:-}" ]]; then
    bold=$'\e[1m' plain=$'\e[0m' red=$'\e[31m'
fi
step() { printf '\n%s[%3d s] %s%s\n' "$bold" "$SECONDS" "$*" "$plain"; }
fail() {
    printf '\n%sdemo: %s%s\n' "$red" "$1" "$plain" >&2
    shift
    printf '  %s\n' "$@" >&2
    exit 1
}

server=""
stop() {
    [[ -n "$server" ]] || return 0
    kill -TERM "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    server=""
}
trap stop EXIT
trap 'exit 130' INT TERM

step "1/5 what is needed from Debian"
scripts/install-deps.sh build demo
echo "everything is there"

step "2/5 build (the first time takes some minutes)"
make build

step "3/5 a certificate for localhost, by a CA made for this demo"
build/release/bin/rayhook certs issue "$dir/certs"

step "4/5 the webhook, on loopback"
serve=(build/release/bin/rayhook serve --listen 127.0.0.1:0 --ops-listen 127.0.0.1:0 --shutdown-delay 0
    --tls-cert "$dir/certs/tls.crt" --tls-key "$dir/certs/tls.key" --lookup "file:$example")
echo "\$ ${serve[*]}"
"${serve[@]}" >"$log" 2>"$dir/server.err" &
server=$!

# The port is any free one: the server logs which.
address=""
for ((i = 0; i < 100; i++)); do
    address="$(sed -n 's/.*"msg":"listening".*"address":"\([^"]*\)".*/\1/p' "$log" | head -n 1)"
    [[ -z "$address" ]] || break
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
done
[[ -n "$address" ]] || fail "the server did not start; it said:" "$(cat "$dir/server.err" "$log")"
echo "listening at https://$address/mutate"

step "5/5 the API server's part: an AdmissionReview for each object of $example"
python=/usr/bin/python3
[[ -x "$python" ]] || python=python3
"$python" scripts/demo.py --url "https://$address/mutate" --ca "$dir/certs/ca.crt" --dir "$dir" "$example" ||
    fail "the webhook did not answer as it should (see above)" "its log: $log"

pid=$server
server=""
kill -TERM "$pid"
code=0
wait "$pid" || code=$?

echo
echo "${bold}what the server logged${plain} ($log)"
grep '"msg":"decision"' "$log" || fail "the server logged no decision" "its log: $log"
[[ "$code" == 0 ]] || fail "the server ended with $code after SIGTERM" "its log: $log and $dir/server.err"

cat <<END

${bold}It works. What next:${plain}
  your own manifests   build/release/bin/rayhook mutate -f FILE -o diff     what would be changed
                       build/release/bin/rayhook explain -f FILE            and why, object by object
  what was sent        $dir/*-review.json, $dir/*-answer.json
  read on              README.md (what it promises, and what not), docs/architecture.md
  the tests            make check (minutes), make test (everything)
demo: done in $SECONDS s
END
