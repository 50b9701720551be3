#!/usr/bin/env bash
# Installs the Debian packages that are missing: a compiler, SQLite's, GoogleTest's and Xbyak's development files and, where no usable
# Python 3.11 is found, Debian's. Does nothing, and needs no rights, where all is there.
set -euo pipefail
cd "$(dirname "$0")/.."

missing=()
need() { # need PACKAGE COMMAND...: the package, if the command fails
  local package=$1
  shift
  "$@" >/dev/null 2>&1 || missing+=("$package")
}
has_header() { echo "#include <$1>" | g++ -x c++ -std=c++20 -fsyntax-only -; }

need g++ g++ --version
need make make --version
need libsqlite3-dev has_header sqlite3.h
need libgtest-dev has_header gtest/gtest.h
need libxbyak-dev has_header xbyak/xbyak.h
if ! tools/find_python.sh 3.11 >/dev/null 2>&1; then
  missing+=(python3.11 python3.11-dev python3.11-venv)
fi
[ ${#missing[@]} -eq 0 ] && exit 0

echo "Missing: ${missing[*]}"
if ! command -v apt-get >/dev/null; then
  echo "This is not Debian or Ubuntu: please install what these packages hold, then try again." >&2
  exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "Not root, and no sudo: please run apt-get install ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" ca-certificates >/dev/null
