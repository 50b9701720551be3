#!/usr/bin/env bash
# find_python.sh 3.12: prints the path of a CPython 3.12 that can be built against (headers, venv, with a GIL), or fails.
# Looks on PATH, in the usual folders and in pyenv's.
set -euo pipefail
version=$1

check='
import os, sys, sysconfig
import ensurepip, venv
assert sys.implementation.name == "cpython"
assert "%d.%d" % sys.version_info[:2] == sys.argv[1]
assert not sysconfig.get_config_var("Py_GIL_DISABLED")
assert os.path.exists(os.path.join(sysconfig.get_path("include"), "internal", "pycore_frame.h"))
print(os.path.realpath(sys.executable))
'

pyenv_root=${PYENV_ROOT:-$HOME/.pyenv}
for python in "python$version" "/usr/bin/python$version" "/usr/local/bin/python$version" \
  $(ls -d "$pyenv_root/versions/$version".*/bin/python3 2>/dev/null | sort -rV); do
  if "$python" -I -c "$check" "$version" 2>/dev/null; then
    exit 0
  fi
done
echo "No usable CPython $version found." >&2
exit 1
