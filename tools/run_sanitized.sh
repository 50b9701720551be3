#!/usr/bin/env bash
# run_sanitized.sh [COMMAND...]: runs the C++ tests that `build.py --sanitize` made, by ctest or by the command given. The first error of
# either sanitizer ends a test as failed.
set -euo pipefail
cd "$(dirname "$0")/.."
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1:strict_string_checks=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1:halt_on_error=1}
(($#)) && exec "$@"
exec .venv/py311/bin/ctest --test-dir build/asan --output-on-failure --no-tests=error --timeout 300 -j "$(nproc)"
