"""setup_venv.py FOLDER EXTRA...: a virtual environment of the Python that runs this, with the project's dependencies.

Installs what pyproject.toml names: the run-time dependencies and the given extras, but not the project itself. Quick
when nothing has changed: a stamp in the environment says what it was made from. Standard library only: it runs before
anything is installed.
"""

import hashlib
import json
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Packages whose wheels, of all Python versions, hold the same C++ library, which is all that is used of them: where
# there is none for this Python, the newest one's serves.
SAME_LIBRARY = {"halide": "3.13"}


def expand(extra: str, extras: dict[str, list[str]]) -> list[str]:
    """The requirements of an extra, with extras of extras ("dalsegno[a,b]") resolved."""
    result: list[str] = []
    for requirement in extras[extra]:
        inner = re.fullmatch(r"dalsegno\[(.+)\]", requirement)
        if inner:
            for name in inner[1].split(","):
                result += expand(name.strip(), extras)
        else:
            result.append(requirement)
    return result


def requirements(extras: list[str]) -> list[str]:
    """Everything to install, without repetition."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = list(project["dependencies"])
    for extra in extras:
        wanted += expand(extra, project["optional-dependencies"])
    return sorted(set(wanted))


def borrows(requirement: str) -> str:
    """The other Python version whose wheel serves, or "" (see SAME_LIBRARY)."""
    newest = SAME_LIBRARY.get(re.split(r"[<>=!~; \[]", requirement)[0], "")
    newer = newest and sys.version_info[:2] > tuple(int(part) for part in newest.split("."))
    return newest if newer else ""


def main() -> None:
    folder = Path(sys.argv[1])
    wanted = requirements(sys.argv[2:])
    stamp = folder / "made-from"
    made_from = hashlib.sha256(json.dumps([sys.version, sys.base_prefix, wanted]).encode()).hexdigest()
    if stamp.exists() and stamp.read_text() == made_from:
        return
    print(
        f"Setting up {folder} (Python {sys.version.split()[0]}): {len(wanted)} packages and what they need", flush=True
    )
    venv.create(folder, clear=True, symlinks=True, with_pip=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    # Most modules are never imported: those that are get compiled then.
    install = ["install", "--quiet", "--prefer-binary", "--no-compile"]
    borrowed = [each for each in wanted if borrows(each)]
    subprocess.run([*pip, *install, *(each for each in wanted if each not in borrowed)], check=True)
    for requirement in borrowed:
        other = ["--no-deps", "--only-binary=:all:", "--python-version", borrows(requirement)]
        packages = sysconfig.get_path("platlib", "venv", {"base": str(folder), "platbase": str(folder)})
        subprocess.run([*pip, *install, *other, "--target", packages, requirement.split(";")[0]], check=True)
    stamp.write_text(made_from)


if __name__ == "__main__":
    main()
