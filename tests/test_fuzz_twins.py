"""NaN in the data costs no launch, whatever the expression."""

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import dalsegno as ds
from dalsegno.fuzz.chooser import Chooser
from dalsegno.fuzz.engines import Dalsegno
from dalsegno.fuzz.twins import CALLS, launches, source_of

pytestmark = pytest.mark.once


@st.composite
def sources(draw: st.DrawFn) -> str:
    return source_of(Chooser(draw))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_nan_costs_no_launch(dtype: str) -> None:
    backend = Dalsegno()

    @seed(7)
    @settings(max_examples=30, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(sources())
    def agree(source: str) -> None:
        with ds.config(background=False, step_aside=False, inner_loops=0):
            plain = launches(source, dtype, False, backend)
            assert launches(source, dtype, True, backend) == plain >= CALLS - 1, source

    agree()
