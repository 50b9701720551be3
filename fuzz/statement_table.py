"""One-line statements and loop headers, with their weights; holes as in grammar.py."""

from __future__ import annotations

from .chooser import Weighted

ASSIGNED_KINDS: Weighted[str] = Weighted(
    [(10, "num"), (16, "arr"), (5, "int"), (3, "mask"), (5, "odd"), (3, "bool"), (3, "str"), (5, "list"),
     (2, "tuple"), (3, "dict"), (2, "set"), (2, "arrs"), (3, "box"), (2, "fn")]
)  # fmt: skip

# One-line statements on what is bound already.
SIMPLE: Weighted[str] = Weighted(
    [
        (1, "pass"),
        (6, "<arrvar> <inplace> <arr>"),
        (6, "<arrvar> <inplace> <num>"),
        (5, "<arrvar>[<index>] = <num>"),
        (5, "<arrvar>[<mask>] = <num>"),
        (1, "<arrvar>[<mask>] <inplace> <num>"),
        (4, "<arrvar:1>[1:] = <arrvar:1>[:-1]"),
        (3, "<arrvar>[...] = <arr>"),
        (2, "<arrvar>[::2] = <num>"),
        (1, "<arrvar>[::-1] = <arrvar>"),
        (2, "<arrvar>[1:] <inplace> <num>"),
        (1, "<arrvar>.fill(<num>)"),
        (1, "<arrvar>.sort()"),
        (2, "np.<ufunc2>(<arr>, <num>, out=<arrvar>)"),
        (1, "np.<ufunc1>(<arr>, out=<arrvar>)"),
        (1, "np.copyto(<arrvar>, <arr>)"),
        (1, "np.add.at(<arrvar>, 0, <num>)"),
        (2, "<oddvar> <inplace> <num>"),
        (1, "<oddvar>[:2] = <num>"),
        (5, "<listvar>.append(<num>)"),
        (2, "<listvar>.extend(<list>[:3])"),
        (2, "<listvar>[<index>] = <num>"),
        (1, "<listvar>[1:2] = [<num>]"),
        (2, "<listvar>.pop()"),
        (1, "<listvar>.insert(0, <num>)"),
        (1, "<listvar>.reverse()"),
        (1, "<listvar>.sort()"),
        (1, "del <listvar>[<index>]"),
        (1, "<listvar>.remove(<num>)"),
        (4, "<dictvar>[<key>] = <num>"),
        (2, "<dictvar>.update(<dict>)"),
        (1, "<dictvar>.pop(<key>, None)"),
        (1, "<dictvar>.setdefault(<key>, <num>)"),
        (1, "del <dictvar>[<key>]"),
        (1, "<dictvar>[<key>] += <num>"),
        (2, "<setvar>.add(<int>)"),
        (1, "<setvar>.update({<int>})"),
        (1, "<setvar>.discard(<int>)"),
        (2, "<arrsvar>.append(<arr>)"),
        (1, "<arrsvar>[0] = <arr>"),
        (1, "<arrsvar>[0] += <num>"),
        (4, "<boxvar>.value = <num>"),
        (3, "<boxvar>.value += <num>"),
        (1, "<boxvar>.items.append(<num>)"),
        (1, "<boxvar>.count = <int>"),
        (3, "LOG.append(<num>)"),
        (1, "LOG.append(<arrvar>)"),
        (2, "TABLE[<key>] = <num>"),
        (1, "TABLE['n'] = TABLE.get('n', 0) + 1"),
        (3, "print(<num>)"),
        (1, "print('v', <str>, <intvar>, sep=':', end=';')"),
        (1, "print(<arrvar>)"),
        (3, "warnings.warn(<str>, <category>)"),
        (1, "warnings.warn('deeper', <category>, stacklevel=2)"),
        (1, "print(sorted(locals()))"),
        (1, "exec('LOG.append(1)')"),
        (1, "assert <bool>, <str>"),
        (2, "<boolvar> = <bool>"),
        (1, "<arrvar:1>.shape = <arrvar:1>.shape"),
        (1, "import math"),
        (2, "SETTINGS.rate = <num>"),
        (1, "SETTINGS.rate += <num>"),
        (1, "setattr(SETTINGS, <key>, <num>)"),
        (1, "Derived.scale = <num>"),
        (1, "raising(<num>)"),
        (1, "LOG.append(raising)"),
        (1, "del TABLE[<key>]"),
        (1, "from math import floor as fl"),
        (1, "print(Money(<num>) == <num>, f'{Money(2):x}')"),
        (1, "LOG.append(<listvar>)"),
        (1, "LOG[-1:] = [<num>]"),
    ]
)


LOOPS: Weighted[tuple[str, tuple[str, ...]]] = Weighted(
    [
        (8, ("$i in range(<positive>)", ("int",))),
        (2, ("$i in range(<small>, <positive>)", ("int",))),
        (1, ("$i in range(4, 0, -<positive>)", ("int",))),
        (6, ("$i in <list>[:4]", ("num",))),
        (4, ("$i, $x in enumerate(<list>[:4])", ("int", "num"))),
        (3, ("$i, $x in zip(<list>[:4], <tuple>)", ("num", "num"))),
        (2, ("$i, $x in <dictvar>.copy().items()", ("str", "num"))),
        (2, ("$i in <arr>[:3]", ("arr",))),
        (2, ("$i in <arr>.ravel()[:3]", ("num",))),
        (2, ("$i in <arrs>[:3]", ("arr",))),
        (1, ("$i in <set>", ("int",))),
        (1, ("$i in reversed(<list>[:4])", ("num",))),
        (1, ("$i in numbers(<positive>)", ("num",))),
        (1, ("$i in map(<fnvar>, <list>[:4])", ("num",))),
        (1, ("$i in tuple(<str>[:3])", ("str",))),
        (1, ("$i in (q for q in <list>[:4])", ("num",))),
    ]
)

# $a: one array, read by the first and written to by the second.
READS = (
    "$a * <num>",
    "$a + <arr>",
    "np.<ufunc1>($a)",
    "np.where(<mask>, $a, <num>)",
    "$a - $a[0]",
    "np.maximum($a, 0) + <num>",
)
WRITES = (
    "$a[0] = <num>",
    "$a += <num>",
    "$a[...] = <arr>",
    "$a[<mask>] = <num>",
    "np.add($a, 1, out=$a)",
    "$a.fill(<num>)",
    "$a[::-1] *= 2",
    "$a.T[...] = <num>",
)
