"""pytest plugin: the fixture `dalsegno_equivalent(function, *calls)` demands that jitted calls equal eager ones in
everything observable."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.fixture
def dalsegno_equivalent() -> Callable[..., None]:
    from .equivalent import equivalent

    return equivalent
