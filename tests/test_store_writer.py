"""The thread that writes traces to the store: calls leave jobs to it, and never wait for it."""

from __future__ import annotations

from pathlib import Path

from tests.test_process_ends import run

PROGRAM = """
    import os, sqlite3
    import dalsegno as ds
    from dalsegno import _core
    from dalsegno._testing import persist
    def squares(n):
        total = 0
        for k in range(n): total += k * k
        return total
    def cubes(n):
        total = 0
        for k in range(n): total += k * k * k
        return total
    @ds.jit
    def first(n): return squares(n) + 1
    @ds.jit
    def second(n): return cubes(n) + squares(n)
    recorded = lambda: (first.stats["recordings"], second.stats["recordings"])
"""


def test_jobs_are_done_in_the_order_of_calls_that_went_on_meanwhile(tmp_path: Path) -> None:
    store = str(tmp_path / "s.sqlite3")
    source = (
        PROGRAM
        + """
    held = persist.HeldWriter()
    print(*(first(40 + k) == squares(40 + k) + 1 and second(50) == cubes(50) + squares(50) for k in range(4)))
    print(persist.writing(), os.path.exists(os.environ["DALSEGNO_STORE"]))
    held.release()
    ds.wait()
    print(persist.writing(), _core.store_stats()["errors"], _core.store_stats()["damaged"])
    """
    )
    assert run(source, store).split("\n") == ["True True True True", "True False", "False 0 0"]
    again = PROGRAM + "    first(40), second(50); print(recorded())"
    assert run(again, store) == "(0, 0)"


def test_what_was_never_noted_is_not_looked_up_while_the_writer_is_at_work(tmp_path: Path) -> None:
    """Companions' first calls waited for the transaction that kept what had just been recorded."""
    source = (
        PROGRAM
        + """
    first(40)
    ds.wait()
    held = persist.HeldWriter()
    other = sqlite3.connect(os.environ["DALSEGNO_STORE"])
    other.execute("BEGIN EXCLUSIVE")
    right = second(50) == cubes(50) + squares(50)
    other.rollback()
    held.release()
    ds.wait()
    print(right, _core.store_stats()["errors"])
    """
    )
    assert run(source, str(tmp_path / "s.sqlite3"), DALSEGNO_STEP_ASIDE="1") == "True 0"


def test_jobs_wait_for_the_end_of_a_fork(tmp_path: Path) -> None:
    source = (
        PROGRAM
        + """
    for turn in range(20):
        (first if turn % 2 else second)(30 + turn)
        child = os.fork()
        if child == 0:
            first(20), second(20)
            ds.wait()
            os._exit(0 if first(31) == squares(31) + 1 else 1)
        assert os.waitpid(child, 0)[1] == 0
    ds.wait()
    print(persist.writing(), _core.store_stats()["damaged"])
    """
    )
    assert run(source, str(tmp_path / "s.sqlite3")) == "False 0"


def test_who_waits_and_who_leaves_jobs_at_the_same_time_both_come_to_an_end(tmp_path: Path) -> None:
    source = (
        PROGRAM
        + """
    import threading
    ended = threading.Event()
    def waits():
        while not ended.is_set(): ds.wait()
    threads = [threading.Thread(target=waits) for _ in range(2)]
    for thread in threads: thread.start()
    for k in range(60):
        space = {}
        exec(f"def f(n): return sum(range(n)) + {k}", space)
        assert ds.jit(space["f"])(10) == 45 + k
        first(20 + k)
    ended.set()
    for thread in threads: thread.join()
    ds.wait()
    print(persist.writing())
    """
    )
    assert run(source, str(tmp_path / "s.sqlite3")) == "False"
