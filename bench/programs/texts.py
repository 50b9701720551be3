"""Text: counting, parsing, encoding."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import Any


def word_count(text: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for line in text.splitlines():
        for word in line.lower().split():
            word = word.strip(".,;:!?")
            if word:
                counts[word] = counts.get(word, 0) + 1
    return counts


def most_common(text: str, n: int) -> list[tuple[str, int]]:
    return Counter(re.findall(r"[a-z]+", text.lower())).most_common(n)


def parse_table(text: str) -> dict[str, tuple[int, float]]:
    """Comma-separated values into totals by name."""
    totals: dict[str, tuple[int, float]] = {}
    lines = text.split("\n")
    header = lines[0].split(",")
    for line in lines[1:]:
        row = dict(zip(header, line.split(","), strict=True))
        count, price = int(row["count"]), float(row["price"])
        before = totals.get(row["name"], (0, 0.0))
        totals[row["name"]] = (before[0] + count, before[1] + count * price)
    return totals


def caesar(text: str, shift: int) -> str:
    result = ""
    for letter in text:
        if "a" <= letter <= "z":
            result += chr((ord(letter) - ord("a") + shift) % 26 + ord("a"))
        elif "A" <= letter <= "Z":
            result += chr((ord(letter) - ord("A") + shift) % 26 + ord("A"))
        else:
            result += letter
    return result


def run_lengths(text: str) -> str:
    parts = []
    i = 0
    while i < len(text):
        j = i
        while j < len(text) and text[j] == text[i]:
            j += 1
        parts.append(f"{j - i}{text[i]}")
        i = j
    return "".join(parts)


def tokens(source: str) -> list[tuple[str, str]]:
    """A small lexer, character by character."""
    found = []
    i = 0
    while i < len(source):
        c = source[i]
        if c.isspace():
            i += 1
        elif c.isdigit():
            j = i
            while j < len(source) and (source[j].isdigit() or source[j] == "."):
                j += 1
            found.append(("number", source[i:j]))
            i = j
        elif c.isalpha():
            j = i
            while j < len(source) and source[j].isalnum():
                j += 1
            found.append(("name", source[i:j]))
            i = j
        else:
            found.append(("sign", c))
            i += 1
    return found


def evaluate(source: str, names: dict[str, float]) -> float:
    """A recursive descent parser over the tokens."""
    stream = [*tokens(source), ("end", "")]
    place = 0

    def take() -> tuple[str, str]:
        nonlocal place
        place += 1
        return stream[place - 1]

    def factor() -> float:
        kind, text = take()
        if kind == "number":
            return float(text)
        if kind == "name":
            return names[text]
        if text == "-":
            return -factor()
        value = total()
        take()
        return value

    def term() -> float:
        value = factor()
        while stream[place][1] in ("*", "/"):
            value = value * factor() if take()[1] == "*" else value / factor()
        return value

    def total() -> float:
        value = term()
        while stream[place][1] in ("+", "-"):
            value = value + term() if take()[1] == "+" else value - term()
        return value

    return total()


def anagrams(words: list[str]) -> list[list[str]]:
    groups = defaultdict(list)
    for word in words:
        groups["".join(sorted(word))].append(word)
    return sorted((sorted(group) for group in groups.values() if len(group) > 1), key=len)


def parse_json(text: str) -> Any:
    """A small reader of JSON without escapes."""

    def value(i: int) -> tuple[Any, int]:
        while text[i] in " \n":
            i += 1
        if text[i] == "{":
            members: dict[str, Any] = {}
            i += 1
            while text[i] != "}":
                key, i = value(i)
                members[key], i = value(i + 1)
                i += text[i] == ","
            return members, i + 1
        if text[i] == "[":
            items = []
            i += 1
            while text[i] != "]":
                item, i = value(i)
                items.append(item)
                i += text[i] == ","
            return items, i + 1
        if text[i] == '"':
            end = text.index('"', i + 1)
            return text[i + 1 : end], end + 1
        end = i
        while end < len(text) and text[end] not in ",]} \n":
            end += 1
        return float(text[i:end]), end

    return value(0)[0]


def justify(text: str, width: int) -> list[str]:
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            lines.append(line.ljust(width, "."))
            line = word
        else:
            line = f"{line} {word}" if line else word
    return [*lines, line]


def palindromes(text: str) -> str:
    """The longest one."""
    best = ""
    for centre in range(len(text)):
        for odd in (0, 1):
            left, right = centre, centre + odd
            while left >= 0 and right < len(text) and text[left] == text[right]:
                left -= 1
                right += 1
            if right - left - 1 > len(best):
                best = text[left + 1 : right]
    return best
