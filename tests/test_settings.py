"""dalsegno.config: defaults, checks, environment variables, blocks."""

from __future__ import annotations

import pytest

import dalsegno as ds
import numpy as np
from tests.conftest import ROOT
from tests.front import assert_one_clear_line

pytestmark = pytest.mark.once


def poly(x, k=3):
    return 2 * x + k


X = np.arange(5.0)


def test_settings_have_defaults_variables_and_checks():
    from dalsegno.config import SETTINGS

    assert {"disable", "store", "threads", "hot_exit", "max_ops", "kernels", "record", "background", "fault"} <= set(
        SETTINGS
    )
    for name, setting in SETTINGS.items():
        assert setting.check(setting.default) == setting.default
        assert setting.variable == f"DALSEGNO_{name.upper()}"
        assert name in repr(ds.config) and setting.variable in repr(ds.config)
        assert hasattr(ds.config, name) and name in dir(ds.config)


def test_the_reference_names_every_setting_and_counter():
    from dalsegno.config import SETTINGS
    from dalsegno.stats import COUNTERS

    text = (ROOT / "docs" / "reference.md").read_text()
    for name, setting in SETTINGS.items():
        shown = f'"{setting.default}"' if setting.default == "" else str(setting.default)
        assert f"| `{name}` | `{shown}` | `{setting.variable}` |" in text
    for name in COUNTERS:
        assert f"`{name}`" in text


def test_settings_hold_inside_a_block_only():
    assert ds.config.kernels is True
    with ds.config(kernels=False, hot_exit=7) as config:
        assert config is ds.config and (config.kernels, config.hot_exit) == (False, 7)
        with ds.config(kernels=True):
            assert config.kernels and config.hot_exit == 7
        assert not config.kernels
    assert (ds.config.kernels, ds.config.hot_exit) == (True, 2)
    with pytest.raises(KeyError), ds.config(threads=3):
        raise KeyError
    assert ds.config.threads == 0


def test_settings_as_a_decorator():
    @ds.config(hot_exit=9)
    def inside():
        return ds.config.hot_exit

    assert inside() == 9 and ds.config.hot_exit == 2


def test_settings_by_assignment():
    ds.config.hot_exit = 5
    assert ds.config.hot_exit == 5 and ds.config.to_dict()["hot_exit"] == 5


def test_a_setting_reaches_the_machine():
    with ds.config(record=False):
        f = ds.jit(store=False)(poly)
        for _ in range(3):
            f(X)
        assert f.stats["recordings"] == 0
    f(X)
    assert f.stats["recordings"] == 1


def test_what_was_recorded_is_kept_in_the_store_of_that_time(tmp_path):
    """Also what is written, or compiled, only after the setting has changed."""
    tmp_path.chmod(0o700)
    path = str(tmp_path / "s.sqlite3")
    f = ds.jit(lambda x: (x - 11.25) * 7.75 - x)  # a kernel that no other test has compiled
    with ds.config(store=path, assemble=False):
        for _ in range(2):
            f(X)
    with ds.config(store=path):
        stats = ds.store.stats()
    assert (stats["traces"], stats["kernels"]) == (1, 1)


@pytest.mark.parametrize(
    ("values", "error", "words"),
    [
        ({"kernel": True}, TypeError, "no setting 'kernel'; did you mean 'kernels'"),
        ({"kernels": 1}, TypeError, "kernels must be True or False, not 1"),
        ({"threads": True}, TypeError, "threads must be an integer from 0 to 1024, not True"),
        ({"threads": -1}, ValueError, "threads must be an integer from 0 to 1024, not -1"),
        ({"hot_exit": 0}, ValueError, "hot_exit must be an integer from 1"),
        ({"max_ops": 1.5}, TypeError, "max_ops must be an integer"),
        ({"store": 3}, TypeError, "store must be a string, not 3"),
    ],
)
def test_bad_settings(values, error, words):
    before = ds.config.to_dict()
    with pytest.raises(error, match=words) as caught:
        ds.config(**values)
    assert_one_clear_line(caught.value)
    name, value = next(iter(values.items()))
    with pytest.raises((error, AttributeError), match=words):
        setattr(ds.config, name, value)
    with pytest.raises((error, TypeError)):
        ds.config(threads=1, **{name: value} if name != "threads" else {"threads": value, name + "x": 1})
    assert ds.config.to_dict() == before


def test_unknown_setting_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no setting 'kernel'; did you mean 'kernels'"):
        ds.config.kernel  # noqa: B018
    assert not hasattr(ds.config, "nothing")


def test_settings_from_the_environment(run_python):
    code = "import dalsegno as ds; c = ds.config; print(c.kernels, c.threads, c.hot_exit, c.fault)"
    done = run_python("-c", code, DALSEGNO_KERNELS="off", DALSEGNO_THREADS="3", DALSEGNO_HOT_EXIT=" 4 ")
    assert (done.stdout, done.stderr) == ("False 3 4 \n", "")


@pytest.mark.parametrize(
    ("variable", "value"), [("KERNELS", "maybe"), ("THREADS", "many"), ("THREADS", "-2"), ("MAX_OPS", "1e9")]
)
def test_a_bad_variable_is_a_warning_and_the_program_runs(run_python, variable, value):
    done = run_python(
        "-c", "import dalsegno as ds; print(ds.jit(lambda x: x + 1)(1))", **{f"DALSEGNO_{variable}": value}
    )
    assert (done.returncode, done.stdout) == (0, "2\n")
    assert f"DALSEGNO_{variable} must be" in done.stderr and repr(value) in done.stderr and "is used" in done.stderr
