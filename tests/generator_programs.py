"""Programs with loops over generators, as texts, each a function f of one int (some have others): name, text."""

from __future__ import annotations

COUNT = """
    def count(n, step=1):
        i = 0
        while i < n:
            yield i
            i += step

"""
PROGRAMS = {
    "sums": COUNT
    + """
    def f(n):
        t = 0
        for x in count(n):
            t += x
        for x in count(n, 3):
            t -= x
        return t
""",
    "floats and arrays": """
    def steps(y, h):
        t = 0.0
        while t < 1.0:
            y = y + h * -y
            t += h
            yield t, y

    def f(n):
        out = []
        for t, y in steps(np.array([1.0, 0.5, n]), 0.04):
            out.append((t, float(y[0]), y.sum()))
        return out, t, y.tolist()
""",
    "neighbours": """
    def around(r, c, n):
        for dr, dc in ((0, 1), (1, 0), (0, -1), (-1, 0)):
            a, b = r + dr, c + dc
            if 0 <= a < n and 0 <= b < n:
                yield a, b

    def f(n):
        t = []
        for r in range(n % 7 + 2):
            for c in range(5):
                for a, b in around(r, c, 5):
                    t.append(a * b)
        return t
""",
    "in one another": COUNT
    + """
    def pairs(n):
        for a in count(n):
            for b in count(a):
                yield a, b

    def picked(n):
        for a, b in pairs(n):
            if (a + b) % 3 == 0:
                yield a * b

    def f(n):
        return [x for x in picked(n % 23)], sum(x for x in picked(n % 19))
""",
    "several yields": """
    def phases(n):
        yield "begin", 0
        for k in range(n):
            if k % 3 == 0:
                yield "third", k
            elif k % 5 == 0:
                yield "fifth", k * 0.5
        yield "end", n

    def f(n):
        seen = {}
        for name, k in phases(n):
            seen[name] = seen.get(name, 0) + k
        return seen
""",
    "broken off and gone on with": COUNT
    + """
    def f(n):
        g, out = count(n), []
        for x in g:
            if x >= n // 3:
                break
            out.append(x)
        else:
            out.append("ended")
        out.append(next(g, None))
        for x in g:
            out.append(-x)
        for x in g:
            out.append("never")
        return out, list(g)
""",
    "advanced by the body": COUNT
    + """
    def f(n):
        g, t = count(n), []
        for x in g:
            t.append((x, next(g, "none")))
            if x % 7 == 0:
                t.extend(list(zip(range(2), g)))
        return t
""",
    "an error of the generator's": COUNT
    + """
    def failing(n):
        for x in count(n):
            yield 10 // (n - 3 - x)

    def f(n):
        t = 0
        for x in failing(n):
            t += x
        return t
""",
    "an error in the body": COUNT
    + """
    def f(n):
        t = []
        g = count(n)
        try:
            for x in g:
                t.append(1 // (n - 4 - x))
        except ZeroDivisionError as e:
            t.append((str(e), x, g.gi_frame.f_lineno, g.gi_running))
        return t, list(g)
""",
    "caught inside": """
    def safe(n):
        for x in range(n):
            try:
                yield 12 // (x % 5)
            except GeneratorExit:
                raise
            except ZeroDivisionError:
                yield -1

    def f(n):
        return [v + 1 for v in safe(n)]

    def g(n):
        t = 0
        for v in safe(n):
            t += v
        return t
""",
    "something to be done at the end": """
    def closing(n, log):
        try:
            for x in range(n):
                yield x
        finally:
            log.append("closed")

    def f(n):
        log, t = [], 0
        for x in closing(n, log):
            t += x
            if t > 50:
                break
        return t, log, x
""",
    "stop inside": """
    def stopping(n):
        for x in range(n):
            if x == 5:
                raise StopIteration
            yield x

    def f(n):
        t = 0
        for x in stopping(n):
            t += x
        return t
""",
    "a value returned": """
    def counted(n):
        k = 0
        for x in range(n):
            k += 1
            yield x * 0.5
        return k

    def f(n):
        t = 0.0
        for x in counted(n):
            t += x
        return t
""",
    "delegating": COUNT
    + """
    def both(n):
        k = yield from count(n)
        yield from count(n, 2)
        yield k

    def f(n):
        return [x for x in both(n)]

    def g(n):
        t = []
        for x in both(n):
            t.append(x)
        return t
""",
    "methods and closures": """
    class Tree:
        def __init__(self, value, left=None, right=None):
            self.value, self.left, self.right = value, left, right

        def leaves(self):
            if self.left is not None:
                for v in self.left.leaves():
                    yield v
            yield self.value
            if self.right is not None:
                for v in self.right.leaves():
                    yield v

    def build(lo, hi):
        if lo >= hi:
            return None
        m = (lo + hi) // 2
        return Tree(m, build(lo, m), build(m + 1, hi))

    def f(n):
        tree, scale = build(0, n % 40 + 2), 3

        def scaled(k):
            nonlocal scale
            for v in tree.leaves():
                scale += 1
                yield v * scale + k

        return [v for v in tree.leaves()], [v for v in scaled(1)], scale
""",
    "given and taken": COUNT
    + """
    def squares(xs):
        for x in xs:
            yield x * x

    def f(n):
        agenda, out = [squares(count(n)), count(n, 5), squares(range(9))], []
        while agenda:
            g = agenda.pop(0)
            for x in g:
                out.append(x)
                if x % 2:
                    agenda.append(g)
                    break
        return out
""",
    "frames that are looked at": """
    def watched(n, log):
        for x in range(n):
            y = x * 2
            frame = sys._getframe()
            log.append((frame.f_code.co_name, frame.f_back.f_code.co_name, frame.f_lineno))
            log.append((frame.f_locals["y"], frame.f_back.f_locals["t"]))
            yield y
            del frame

    def f(n):
        log, t = [], 0
        g = watched(n % 20, log)
        for v in g:
            t += v
            log.append((g.gi_running, g.gi_frame.f_lineno, g.gi_frame.f_locals["x"], g.gi_frame.f_back is None))
        return t, log, g.gi_frame, g.gi_running
""",
    "it calls itself": """
    def odd(n, own):
        for x in range(n):
            if x == n - 2:
                yield next(own[0])
            yield x

    def f(n):
        own, t = [], 0
        own.append(odd(n, own))
        for v in own[0]:
            t += v
        return t
""",
    "variables deleted and unbound": """
    def patchy(n):
        for x in range(n):
            if x % 3 == 0:
                k = x
            elif x % 3 == 2:
                del k
            yield x
        yield k

    def f(n):
        t = 0
        for v in patchy(n):
            t += v
        return t
""",
    "finalisers": """
    class Loud:
        def __init__(self, k, log):
            self.k, self.log = k, log

        def __del__(self):
            self.log.append(self.k)

    def loud(n, log):
        for k in range(n):
            x = Loud(k, log)
            log.append("made")
            yield x
            log.append("gone on")

    def f(n):
        log = []
        for x in loud(n % 11, log):
            log.append(("body", x.k))
            x = None
        log.append("end")
        return log
""",
    "arrays in place": """
    def rows(a):
        for i in range(a.shape[0]):
            yield i, a[i]

    def windows(a, w):
        for i in range(len(a) - w + 1):
            yield a[i:i + w]

    def f(n):
        a = np.arange(12.0 * (n % 5 + 1)).reshape(-1, 3)
        for i, row in rows(a):
            row += i
            row[0] *= 0.5
        return a.tolist(), [w.mean() for w in windows(a[:, 1], 2)], sum(w.sum() for w in windows(a[:, 2], 3))
""",
    "large ints and other types": """
    def growing(x, n):
        for _ in range(n):
            yield x
            x = x * x + 1 if isinstance(x, int) else x + 0.5

    def f(n):
        out = []
        for start in (1, 2 ** 40, 1.5, True, np.float64(2.5), np.int64(3), 2 ** 62):
            t = 0
            for v in growing(start, 5):
                t = t + v
            out.append((t, type(t).__name__))
        return out
""",
    "asked for the next one": COUNT
    + """
    def valued(n):
        yield from ()
        return n

    def echo(n):
        for x in range(n):
            got = yield x
            if got is not None:
                yield got

    def f(n):
        g, out = count(n), []
        while True:
            x = next(g, None)
            if x is None:
                break
            out.append(x * 2)
        h = count(n // 2)
        try:
            while True:
                out.append(-next(h))
        except StopIteration as e:
            out.append(e.args)
        k = count(n % 5)
        while (x := next(k, k)) is not k:
            out.append(x)
        try:
            out.append(next(valued(n)))
        except StopIteration as e:
            out.append(e.value)
        e = echo(n)
        for x in range(n // 2):
            out.append(next(e) + (e.send(7) if x % 3 == 0 else 0))
        return out, next(h, "none"), next(count(2))

    def raised(n):
        g, t = count(n), 0
        for _ in range(n + 3):
            t += next(g)
        return t
""",
    "nexts inside": COUNT
    + """
    def merged(a, b):
        x, y = next(a, None), next(b, None)
        while x is not None or y is not None:
            if y is None or (x is not None and x <= y):
                yield x
                x = next(a, None)
            else:
                yield y
                y = next(b, None)

    def f(n):
        return [v for v in merged(count(n), merged(count(n, 3), count(n // 2)))]
""",
    "named and spread arguments": """
    def spread(*xs, scale=2, **more):
        for x in xs:
            yield x * scale + more.get("k", 0)

    def f(n):
        t = []
        for v in spread(1, 2, n, scale=3, k=n):
            t.append(v)
        for v in spread(*range(n % 9)):
            t.append(v)
        return t
""",
}
