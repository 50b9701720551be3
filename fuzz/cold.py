"""The engine that needs a fresh interpreter: one process runs a batch of programs with a store, another reads them
from it."""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
import resource
import subprocess
import tempfile
from collections.abc import Mapping, Sequence

from .child_process import child_command, child_environment
from .engines import Engine, load_backend
from .kept import KeptTraces
from .oracle import Difference, Session, compare
from .program import Program, load
from .runner import Mismatch, run_session

BATCH = 40
_PHASES = ("write", "read")
_PROCESSOR_SECONDS = 300
_SECONDS = 6000  # for a process that waits for what never comes


@dataclasses.dataclass
class ColdResult:
    mismatches: dict[int, Mismatch]  # by index into the batch
    stats: dict[str, int]  # of the reading process


def check_cold(programs: Sequence[Program], expected: Sequence[Session], backend: str = "") -> ColdResult:
    """`expected` are the eager sessions of the programs, from this process."""
    result = ColdResult({}, {})
    with tempfile.TemporaryDirectory(prefix="dalsegno-cold-") as directory:
        for phase in _PHASES:
            left = [index for index in range(len(programs)) if index not in result.mismatches]
            while left:
                sessions, failure = _run_phase(
                    phase, directory, {index: programs[index] for index in left}, backend, result.stats
                )
                for index, session in sessions.items():
                    _compare(phase, index, expected[index], session, result)
                if not failure:
                    break
                guilty = left[min(len(sessions), len(left) - 1)]
                result.mismatches[guilty] = _mismatch(phase, failure)
                left = left[left.index(guilty) + 1 :]
    return result


def _compare(phase: str, index: int, expected: Session, actual: Session, result: ColdResult) -> None:
    differences = compare(expected, actual)
    if differences:
        differences = [dataclasses.replace(d, where=f"{d.where} ({phase} process)") for d in differences]
        result.mismatches[index] = Mismatch(Engine.COLD_PROCESS, tuple(differences))


def _mismatch(phase: str, failure: str) -> Mismatch:
    return Mismatch(Engine.COLD_PROCESS, (Difference(None, "process", f" ({phase} process)", "ends well", failure),))


def _run_phase(
    phase: str, directory: str, programs: Mapping[int, Program], backend: str, stats: dict[str, int]
) -> tuple[dict[int, Session], str]:
    """Sessions in order up to where the process ended, and how it failed, if it did."""
    folder = os.path.join(directory, phase)
    os.makedirs(folder, exist_ok=True)
    results = os.path.join(folder, "sessions")
    with open(os.path.join(folder, "programs.json"), "w", encoding="utf-8") as file:
        json.dump(
            {"backend": backend, "programs": [(index, program.to_json()) for index, program in programs.items()]}, file
        )
    environment = child_environment() | {"DALSEGNO_STORE": os.path.join(directory, "store.sqlite")}
    command = child_command("cold", folder)
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False)
        failure = "" if done.returncode == 0 else f"exit status {done.returncode}: {done.stderr.strip()[-2000:]}"
    except subprocess.TimeoutExpired:
        failure = f"did not end within {_SECONDS} s"
    sessions: dict[int, Session] = {}
    if os.path.exists(results):
        with open(results, "rb") as stream:
            while True:
                try:
                    index, session = pickle.load(stream)
                except (EOFError, pickle.UnpicklingError):
                    break
                if index < 0:
                    if phase == "read":
                        stats.update(session)
                else:
                    sessions[index] = session
        os.remove(results)
    return sessions, failure


def run_batch(folder: str) -> None:
    """The child's side: runs the programs in `folder`, and leaves their sessions there."""
    with open(os.path.join(folder, "programs.json"), encoding="utf-8") as file:
        job = json.load(file)
    resource.setrlimit(resource.RLIMIT_CPU, (_PROCESSOR_SECONDS, resource.RLIM_INFINITY))
    backend = load_backend(job["backend"])
    kept = KeptTraces(os.environ.get("DALSEGNO_STORE", ""))
    with open(os.path.join(folder, "sessions"), "wb") as stream:
        for index, fields in job["programs"]:
            loaded = load(Program.from_json(fields), folder, f"program{index}")
            session = run_session(loaded, Engine.COLD_PROCESS, backend, store=True)
            if large := kept.too_large(backend, loaded.program.source.count("\n")):
                session = dataclasses.replace(session, afterwards=("store", large))
            pickle.dump((index, session), stream)
            stream.flush()
        backend.wait()
        pickle.dump((-1, dict(backend.stats())), stream)
