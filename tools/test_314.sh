#!/usr/bin/env bash
# test_314.sh [PYTEST ARGUMENT...]: builds the tree for CPython 3.14 and runs its Python tests.
# Where this machine has such an interpreter, on it. Elsewhere in a root of Debian's unstable distribution, which has one: it is made once,
# in build/root-3.14 (or DALSEGNO_ROOT_314), by debootstrap, for which one has to be root. Status 3: no interpreter can be had.
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD
folder=.venv/py314

if [ "${1:-}" = --inside ]; then # the interpreter is here: environment, build, tests
  shift
  python3.14 tools/setup_venv.py "$folder" build test
  "$folder/bin/python" tools/build.py --alone
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  [ $# -gt 0 ] || set -- -m "not once" tests
  PYTHONPATH=. DALSEGNO_STORE="$scratch/store.db" "$folder/bin/python" -m pytest "$@"
  exit
fi

if found=$(tools/find_python.sh 3.14 2>/dev/null); then
  PATH="$(dirname "$found"):$PATH" exec "$0" --inside "$@"
fi

root=${DALSEGNO_ROOT_314:-$here/build/root-3.14}
[ "$(id -u)" -eq 0 ] || { echo "No CPython 3.14 here, and a root for one can only be made by root." >&2; exit 3; }
if [ ! -e "$root/usr/bin/python3.14" ]; then
  command -v debootstrap >/dev/null || apt-get install -y -qq debootstrap >/dev/null 2>&1 || { echo "No CPython 3.14 here, and no debootstrap." >&2; exit 3; }
  echo "Making a root with CPython 3.14 in $root"
  rm -rf "$root"
  packages=python3.14,python3.14-dev,python3.14-venv,g++,make,git,ca-certificates,libsqlite3-dev,libgtest-dev,libxbyak-dev
  mkdir -p "$(dirname "$root")"
  debootstrap --variant=minbase --include="$packages" sid "$root" >"$root.log" 2>&1 || { rm -rf "$root"; tail -n 3 "$root.log" >&2; exit 3; }
fi

# What is mounted there is so for this command alone.
exec unshare --mount --propagation private bash -euc '
  root=$1 here=$2
  shift 2
  mkdir -p "$root$here"
  for each in /proc /dev "$here"; do mount --rbind "$each" "$root$each"; done
  wheels=${PIP_FIND_LINKS:-}
  if [ -d "$wheels" ]; then mkdir -p "$root$wheels" && mount --bind "$wheels" "$root$wheels"; fi
  cp -L /etc/resolv.conf "$root/etc/resolv.conf"
  if [ -f /etc/pip.conf ]; then cp /etc/pip.conf "$root/etc/pip.conf"; fi
  cp -rL /etc/ssl/certs/. "$root/etc/ssl/certs/" 2>/dev/null || true  # a root that was there before may share them
  exec chroot "$root" "$here/tools/test_314.sh" --inside "$@"
' bash "$root" "$here" "$@"
