#!/usr/bin/env bash
# install_dependencies.sh [test|check|fuzz|coverage|package|web|browser]: installs the packages that
# building needs, and those that testing, `make check`, `make fuzz`, `make coverage` or
# `make package` need, on Debian 12 and Ubuntu 24.04; web and browser install only what `make web`
# and Chromium's tests need. It ends at once when everything is there.
set -euo pipefail
packages=(build-essential cmake ninja-build mold libcli11-dev libfmt-dev nlohmann-json3-dev
          libsqlite3-dev libeigen3-dev libxxhash-dev libtomlplusplus-dev zlib1g-dev libboost-dev
          libssl-dev libyaml-dev)
testing=(ccache libgtest-dev libgmock-dev python3 python3-yaml python3-jsonschema python3-onnx
         nats-server)
case "${1:-}" in
  "") ;;
  test) packages+=("${testing[@]}") ;;
  check) packages+=("${testing[@]}" clang-format-19 clang-tidy-19 codespell universal-ctags git) ;;
  fuzz) packages+=(ccache clang-19 libclang-rt-19-dev) ;;
  coverage) packages+=("${testing[@]}" gcovr) ;;
  package) packages+=(python3 python3-venv dpkg binutils) ;;
  web)
    command -v npm >/dev/null && exit 0  # of any origin: packages of others conflict with Debian's
    packages=(nodejs npm) ;;
  browser)
    [ -x "${CHROMIUM:-/usr/bin/chromium}" ] && exit 0
    if [ -z "$(apt-cache policy chromium | grep -v '(none)' | grep Candidate)" ]; then
      # Ubuntu has it as a snap only.
      echo "note: no package of Chromium; CHROMIUM=PATH names one, else its tests are skipped" >&2
      exit 0
    fi
    packages=(chromium) ;;
  *) echo "usage: $0 [test|check|fuzz|coverage|package|web|browser]" >&2; exit 2 ;;
esac
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' ||
    missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "installing: ${missing[*]}"
  sudo=""
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
      echo "cannot install without root: run 'apt-get install ${missing[*]}' as root" >&2
      exit 1
    fi
    sudo=sudo
  fi
  $sudo apt-get update -q
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q "${missing[@]}"
fi
found=no
for candidate in "${CUDA_HOME:-/usr/local/cuda}"/lib64/libnvrtc.so* \
                 /usr/local/cuda*/lib64/libnvrtc.so* /usr/lib/x86_64-linux-gnu/libnvrtc.so*; do
  [ -e "$candidate" ] && found=yes
done
if [ $found = no ]; then
  cat >&2 <<'TEXT'
note: CUDA's run-time compiler (NVRTC) was not found. atunner builds and starts without it but
      cannot compile kernels. Debian has it in its non-free component: add "non-free" to your apt
      sources, then `apt-get install nvidia-cuda-toolkit` (Debian 12's is CUDA 11.8, which has
      neither Hopper nor Blackwell as target).
      Or install CUDA from https://developer.nvidia.com/cuda-downloads.
TEXT
fi
