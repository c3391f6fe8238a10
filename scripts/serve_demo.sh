#!/usr/bin/env bash
# serve_demo.sh [--check] ATUNNER: starts a server in an empty folder, submits a small kernel for
# the virtual GPU, waits for its end, prints the address of the page that shows the run, and serves
# until Ctrl-C. LISTEN (127.0.0.1:8080) is the address. With --check it takes a free port, looks at
# what the page loads, and ends.
set -euo pipefail
check=no
if [ "${1:-}" = --check ]; then
  check=yes
  shift
fi
atunner=$(realpath "${1:?usage: serve_demo.sh [--check] ATUNNER}")
kernel=$(realpath "$(dirname "$0")/../examples/kernels/transpose.cu")
listen=${LISTEN:-127.0.0.1:8080}
trials=24
if [ $check = yes ]; then
  listen=127.0.0.1:0
  trials=4
fi
if ! "$atunner" doctor --json | grep -q '"part":"NVRTC","found":true'; then
  echo "serve_demo.sh: kernels cannot be compiled: NVRTC is not installed" >&2
  exit 77
fi
folder=$(mktemp -d "${TMPDIR:-/tmp}/atunner-serve-demo.XXXXXX")
server=""
cleanup() {
  if [ -n "$server" ]; then
    kill -TERM "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
  rm -rf "$folder"
}
trap cleanup EXIT
trap 'exit 0' INT TERM

"$atunner" serve --json --listen "$listen" --store "$folder/runs.db" \
  >"$folder/ready.json" 2>"$folder/server.log" &
server=$!
for _ in $(seq 300); do
  [ -s "$folder/ready.json" ] && break
  kill -0 "$server" 2>/dev/null || break
  sleep 0.1
done
url=$(sed -n 's/.*"url":"\([^"]*\)".*/\1/p' "$folder/ready.json")
if [ -z "$url" ]; then
  cat "$folder/server.log" >&2
  echo "serve_demo.sh: the server did not start; LISTEN=127.0.0.1:0 takes a free port" >&2
  exit 1
fi
echo "Submitting $(basename "$kernel") for a virtual A100:"
"$atunner" submit "$kernel" --server "$url" --target-gpu A100 --budget $trials --wait \
  --out "$folder/best" --json >"$folder/job.json" || {
  cat "$folder/job.json" "$folder/server.log" >&2
  exit 1
}
field() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" "$folder/job.json"; }
run=$(sed -n 's/.*"runs":\["\([^"]*\)".*/\1/p' "$folder/job.json")
job=$(sed -n 's/.*"events":"\/api\/v1\/jobs\/\([^/]*\)\/events".*/\1/p' "$folder/job.json")
echo
echo "The job:  $url/#/jobs/$job"
echo "Its run:  $url/#/runs/$run"
if [ $check = yes ]; then
  [ "$(field state)" = succeeded ]
  [ -s "$folder/best/manifest.json" ]
  # The page, and the run that it shows.
  exec 3<>"/dev/tcp/127.0.0.1/${url##*:}"
  printf 'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&3
  grep -q '<title>atunner</title>' <&3
  exec 3<>"/dev/tcp/127.0.0.1/${url##*:}"
  printf 'GET /api/v1/runs/%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' "$run" >&3
  grep -q '"status":"finished"' <&3
  echo "The page and the run are served."
  exit 0
fi
echo "Ctrl-C ends the server; nothing of it stays."
wait "$server"
