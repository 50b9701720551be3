"""Dicts and sets in which plain keys stand beside keys of a user's class that hash alike (hook/lookups.h)."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.support import check


class _Odd:
    """A key that is found beside plain ones, and looks around when it is compared."""

    def __init__(self, like: object) -> None:
        self.like = like

    def __hash__(self) -> int:
        return hash(self.like)

    def __eq__(self, other: object) -> bool:
        _COMPARED.append((other, sys._getframe(1).f_lineno))
        global _FACTOR
        _FACTOR += 1
        return False


_COMPARED: list[object] = []
_FACTOR = 1


def _looks_up(table, keys, key):
    global _FACTOR
    _FACTOR = 1
    _COMPARED.clear()
    out = [key in keys, key in table, table.get(key, 5), table.get("b")]
    out.append(_FACTOR)
    table[key] = 1
    out.append(table[key] * _FACTOR)
    out.append({k: 1 for k in (key, key)})
    return out, list(_COMPARED), list(table.values())


@pytest.mark.parametrize("key", [7, "a", 2.5, b"x", None, True], ids=repr)
def test_plain_keys_beside_keys_of_a_users_class(key):
    def plain():
        return {key: 3, "b": 4, 10**6: 1}, {key, 1, "b"}, key

    def odd():
        return {_Odd(key): 1, key: 3, **{i: i for i in range(20)}}, {_Odd(key), key, 5}, key

    def only_odd():
        return {_Odd(key): 1}, {_Odd(key)}, key

    rows = [plain(), plain(), plain(), odd(), odd(), only_odd(), only_odd(), plain()]
    check(_looks_up, *rows, rounds=2)


class Sneaky:
    """Equal to 1, has its hash, and says so."""

    def __init__(self) -> None:
        self.asked = 0

    def __hash__(self) -> int:
        return hash(1)

    def __eq__(self, other: object) -> bool:
        self.asked += 1
        return other == 1


def by_pairs(table: Any, keys: list[Any]) -> tuple[int, list[Any]]:
    hits, found = 0, []
    for a, b in keys:
        if (a, b) in table:
            hits += 1
            if isinstance(table, dict):
                found.append(table[a, b])
    return hits, found


def test_tuples_are_looked_up() -> None:
    keys = [(k % 3, "ab"[k % 2]) for k in range(40)]
    pairs = {(0, "a"), (1, "b"), (2, "a"), None, 1.5, "a"}
    check(by_pairs, (pairs, keys), ({(1, "a"): 1, (2, "b"): "x"}, keys), ({"a": 1}, keys), (frozenset(pairs), keys))
    check(by_pairs, (pairs, keys), (pairs, [*keys, (1.0, None), (True, b"b"), (2, (1, 2))]), (pairs, [*keys, ([], 1)]))


def by_pairs_of(sneaky: Sneaky, keys: list[Any], nested: bool) -> tuple[int, int]:
    inner: Any = (sneaky, "b")
    table = {((1, "b"), 0) if not nested else (inner, 0), inner, (0, "a")}
    hits = 0
    for a, b in keys:
        hits += (a, b) in table
        hits += ((1, "b"), 0) in table
    return hits, sneaky.asked


def test_what_is_asked_for_equality_is_asked() -> None:
    keys = [(k % 3, "ab"[k % 2]) for k in range(40)]
    for nested in (False, True):
        check(by_pairs_of, *[(Sneaky(), keys, nested) for _ in range(5)], (Sneaky(), [(Sneaky(), "b"), *keys], nested))
