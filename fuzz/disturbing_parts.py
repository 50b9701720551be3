"""Parts of modules that disturb calls under way: names rebound, signals, threads, tools that watch, code that changes,
what dies."""

from __future__ import annotations

# A function that is rebound in the middle of calls, in every roundabout way.
_TURNED = """

def turned(x):
    return x + 1


def turn(*_):
    globals()['turned'] = abs


class Names:
    pass


class Sly:
    def __index__(self):
        turn()
        return 0


def roundabout():
    space, names, sly = globals(), Names(), Sly()
    names.__dict__ = space
    def by_item(value):
        space['turned'] = value
    def by_attribute(value):
        names.turned = value
    def by_index(items, value):
        items.insert(sly, value)
        return items[sly]
    return by_item, by_attribute, by_index


by_item, by_attribute, by_index = roundabout()


class Dying:
    def __del__(self):
        turn()


def consuming(x, y):
    x = y
    return turned(x)
"""

_SIGNALLED = """

def noted(number, frame):
    LOG.append((frame.f_code.co_name, frame.f_lineno))


def signalled(x):
    before = signal.signal(signal.SIGUSR1, noted)
    try:
        signal.raise_signal(signal.SIGUSR1)
        return x
    finally:
        signal.signal(signal.SIGUSR1, before)
"""

_THREADED = """

def threaded(function, x):
    got = []
    def run():
        try:
            got.append(function(x))
        except Exception as error:
            got.append(len(str(error)))
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return got[0]


def threaded_narrowly(function, x):
    before = threading.stack_size(256 * 1024)
    try:
        return threaded(function, x)
    finally:
        threading.stack_size(before)
"""

# Signals: `_thread.interrupt_main` makes one come where the interpreter looks next, always the same place; `ticked`
# makes them come at any time, but unseen.
_HEARD = """

def heard(x):
    return x + 1


def noted(number, frame):
    global heard
    LOG.append((frame.f_code.co_name, frame.f_lineno))
    if len(LOG) % 3 == 1:
        heard = abs
    if len(LOG) % 3 == 2:
        raise KeyError('heard')


signal.signal(signal.SIGUSR1, noted)


def tick(*_):
    pass


def ticked(x):
    signal.setitimer(signal.ITIMER_VIRTUAL, 1e-3, 1e-3)
    return x


def awaited(x):
    ticks = []
    def tick(*_):
        ticks.append(x)
    before = signal.signal(signal.SIGVTALRM, tick)
    signal.setitimer(signal.ITIMER_VIRTUAL, 1e-3)
    while not ticks:
        pass
    signal.signal(signal.SIGVTALRM, before)
    return ticks[0]


signal.signal(signal.SIGVTALRM, tick)
"""

# Tools that watch: switched on and off in the middle of calls. Whoever makes the call switches them off behind it.
_WATCHED = """

def watched(code):
    return code.co_filename == __file__ and code.co_name not in ('tick', 'awaited')


def watching(frame, event, argument):
    if watched(frame.f_code) and event in ('call', 'line', 'return', 'exception'):
        LOG.append((event, frame.f_code.co_name, frame.f_lineno))
    return watching


def watch_lines(x):
    sys.settrace(watching)
    return x


def watch_calls(x):
    sys.setprofile(watching)
    return x


def started(code, offset):
    if watched(code):
        LOG.append((code.co_name, offset))


def watch_codes(x):
    monitoring = getattr(sys, 'monitoring', None)
    if monitoring and not monitoring.get_tool(2):
        monitoring.use_tool_id(2, 'fuzz')
        monitoring.register_callback(2, monitoring.events.PY_START, started)
        monitoring.set_events(2, monitoring.events.PY_START)
    return x


def watch_no_more(x):
    sys.settrace(None)
    sys.setprofile(None)
    if getattr(sys, 'monitoring', None):
        sys.monitoring.set_events(2, 0) if sys.monitoring.get_tool(2) == 'fuzz' else None
    return x


def watch_if(x):
    if x:
        sys.setprofile(watching)
    return x
"""

_CLEARED = """

def cleared(x):
    getattr(entry, 'clear', int)()
    return x


def cleared_all(x):
    getattr(sys.modules.get('dalsegno'), 'clear', int)()
    return x
"""

_CODED = """

@jit
def coded(x):
    return x + 1


def recoded(x):
    return x * 2


def recode(*_):
    coded.__code__, recoded.__code__ = recoded.__code__, coded.__code__
"""

# An interpreted function calls a jitted one, which drops its argument.
_RELAY = """

class Noisy:
    def __del__(self):
        LOG.append('gone')


@jit
def consumed(x, y):
    x = y
    LOG.append('bound')
    return x


def relay(x):
    return consumed(Noisy(), x)
"""

_STUMBLE = """

def stumble(x):
    LOG.append('stumbled')
    if x:
        raise ValueError(x)
    return x
"""

# As PARTS of module_parts.py.
DISTURBING: dict[str, str] = {
    "turned": _TURNED,
    "signalled": _SIGNALLED,
    "threaded": _THREADED,
    "heard": _HEARD,
    "watch_": _WATCHED,
    "cleared": _CLEARED,
    "coded": _CODED,
    "relay": _RELAY,
    "stumble": _STUMBLE,
    "CHOICES": "\n\nCHOICES = (lambda x: x + 1, lambda x: x * 2)\n",
}
