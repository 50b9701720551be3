"""One-line statements and loop headers, with their weights; holes as in grammar.py."""

from __future__ import annotations

from .chooser import Weighted

ASSIGNED_KINDS: Weighted[str] = Weighted(
    [(10, "num"), (16, "arr"), (5, "int"), (3, "mask"), (5, "odd"), (3, "bool"), (3, "str"), (5, "list"),
     (2, "tuple"), (3, "dict"), (2, "set"), (2, "arrs"), (3, "box"), (2, "fn"), (2, "iter")]
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
        (1, "vars(<boxvar>)['value'] = <num>"),
        (1, "<boxvar>.total = <fnvar>"),
        (1, "<boxvar>.__class__ = type('Other', (Box,), {'total': lambda self, extra=0: extra})"),
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
        (2, "LOG.append(<refvar>() is None)"),
        (1, "LOG.append(who())"),
        (1, "LOG.append(sys._getframe())"),
        (2, "LOG.append([(f.f_lineno, sorted(f.f_locals)) for f in LOG if type(f).__name__ == 'frame'])"),
        (1, "LOG.append(repr(sys.exc_info()[1]))"),
        (1, "<arrvar>.flags.writeable = False"),
        (1, "<arrvar>.shape = (-1,)"),
        (1, "<arrvar:1>.shape = <arrvar:1>.shape[::-1]"),
        (1, "np.seterr(divide='<errmode>', invalid='<errmode>')"),
        (1, "globals()['LIMIT'] = <num>"),
        (1, "globals().update(SCALE=<num>)"),
        (1, "exec('LIMIT = 1', globals())"),
        (1, "vars(SETTINGS)['rate'] = <num>"),
        (1, "LOG.append(next(<itervar>))"),
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
        (2, "globals()['turned'] = <fnvar>"),
        (1, "globals().update(turned=<fnvar>)"),
        (1, "by_item(<fnvar> if turned else 0)"),
        (1, "by_attribute(<fnvar> if turned else 0)"),
        (1, "by_index(<listvar>, turned and <num>)"),
        (1, "dying = turned and Dying(); del dying"),
        (1, "LOG.append(weakref.ref(turned and Sly(), turn)() is None)"),
        (1, "raising.__code__ = (lambda x: x - 1).__code__"),
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
        (2, ("$i, $x in zip(range(4), <itervar>)", ("int", "num"))),
        (1, ("$i in <dictvar>", ("str",))),
        (1, ("$i in numbers(<positive>)", ("num",))),
        (1, ("$i in map(<fnvar>, <list>[:4])", ("num",))),
        (1, ("$i in tuple(<str>[:3])", ("str",))),
        (1, ("$i in <str>[:3]", ("str",))),
        (1, ("$i in <str>.encode()", ("int",))),
        (1, ("$i, $x in zip(<list>[:4], <iter>)", ("num", "num"))),
        (1, ("$i, $x in zip(<list>[:4], <list>, strict=True)", ("num", "num"))),
        (1, ("$i, $x in enumerate(reversed(<list>[:4]), <int>)", ("int", "num"))),
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

# Loops over the elements of $e, of one dimension, and $g, of two; $s accumulates, $x is an element, $i, $j positions.
ELEMENTS = (
    "<arr>.ravel()[:6].copy()",
    "<odd>.ravel()[:6]",
    "<arr>.ravel()[:6].astype(<dtype>)",
    "np.array([1.5, np.nan, 1e308, -np.inf, 0.0])",
    "np.array([2**62, -2, 3, 2**62])",
    "<mask>.ravel()[:4]",
)
GRIDS = ("np.arange(6).reshape(2, 3).astype(<dtype>)", "np.ones((3, 2), <dtype>).T", "np.atleast_2d(<arr>)[:3, :3]")
STARTS = ("0", "<floatlit>", "$e[0]", "<num>", "np.float32(0)", "<int>")
# header, and what precedes the body
ELEMENT_LOOPS = (
    ("for $i, $x in enumerate($e):", ""),
    ("for $i in range($e.size):", "$x = $e[$i]"),
    ("for $i in range(-$e.size, <small>):", "$x = $e[$i]"),
    ("for $i in np.arange($e.size):", "$x = $e[$i]"),
    ("for $x in $e:", "$i = <index>"),
)
ELEMENT_BODIES: Weighted[str] = Weighted(
    [
        (8, "$s = $s + $x"),
        (4, "$s = $s <arith> $x"),
        (3, "$s = $x <arith> <num>"),
        (4, "$s = <floatlit> * $x + 0.75 * $s"),
        (3, "$e[$i] = $s"),
        (2, "$e[$i] <inplace> $x"),
        (2, "$e[-1 - $i] = $x"),
        (2, "$s = min($s, $x, $e[$i])"),
        (1, "$s = abs($x) - $s"),
        (1, "$s = max($x * 1, $s + 0, $s); LOG.append(($s is $x, type($s).__name__))"),
        (1, "$s = <mathfn>($x)"),
        (1, "$s = <mathfn>($s + $x)"),
        (1, "$s = $s + $e.item($i)"),
        (1, "$s = <converter>($x) + len($e); LOG.append(type($s).__name__)"),
        (1, "$s = $x // $s + $s % $x"),
        (1, "$s = $s <bitop> $x"),
        (1, "$s = -$x"),
        (1, "$s = $x ** <small>"),
        (2, "$s = $s + 1 if $x <cmp> $s else 0.5"),
        (1, "$s = int(<num>) if $x else $s"),
        (1, "LOG.append($e[$i + <small>])"),
        (2, "LOG.append(($x, type($s).__name__))"),
        (1, "LOG.append($s is $x)"),
    ]
)
GRID_BODIES: Weighted[str] = Weighted(
    [
        (5, "$s = $s + $g[$i, $j]"),
        (4, "$g[$i, $j] = $s"),
        (3, "$g[$i, $j] <inplace> $g[$i - 1, $j - 1]"),
        (2, "$s = $g[$i, $j] <arith> $g[$i, -1]"),
        (2, "$s = min($g[$i - 1, $j], $g[$i, $j - 1], $g[-1, 0])"),
        (1, "$g[$i, $j] = $g[$i, $j + <small>]"),
        (1, "$g[$i][$j] = $s"),
        (1, "$s = $s + $g[$i][$j]"),
        (2, "$g[$i, $j] <inplace> $g[0, -1]"),
        (1, "q = ($i, $j); $s = $g[q]; $g[q] = <num>; LOG.append(q)"),
        (1, "q = ($i, $j + 0); $g[q] = raising($s); LOG.append(q[0] is $i)"),
        (1, "LOG.append($g[$j, $i])"),
    ]
)
