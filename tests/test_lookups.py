"""Dicts and sets in which plain keys stand beside keys of a user's class that hash alike (hook/lookups.h)."""

from __future__ import annotations

import sys

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
