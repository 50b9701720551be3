# `make demo` and `make test` need nothing prepared: they install what is missing, make the virtual environment, build, and run.
PY := .venv/py311/bin/python

.PHONY: help setup build demo test test-3.14 lint format sanitize bench wheel clean
help:
	@echo "make demo | test | test-3.14 | build | lint | format | sanitize | bench | wheel | clean   (see CONTRIBUTING.md)"

setup:
	@tools/setup_system.sh
	@"$$(tools/find_python.sh 3.11)" tools/setup_venv.py .venv/py311 dev

build: setup
	@$(PY) tools/build.py

demo: build
	@PYTHONPATH=. $(PY) -m dalsegno demo

test: setup
	@$(PY) tools/test_all.py

test-3.14:
	@tools/test_314.sh

lint: setup
	@$(PY) tools/build.py --tests
	@$(PY) tools/lint.py

format: setup
	@$(PY) tools/lint.py --fix

sanitize: setup
	@$(PY) tools/build.py --sanitize
	@tools/run_sanitized.sh

bench: build
	@PYTHONPATH=. $(PY) -m dalsegno bench

wheel: setup
	@$(PY) -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	@ls dist

clean:
	rm -rf build dist dalsegno/*.so dalsegno/lib
