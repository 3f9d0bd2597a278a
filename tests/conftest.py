"""What every test runs under: no blocking call in the event loop, a named Hypothesis profile."""

import inspect
import os
from collections.abc import Iterator

import pytest
from blockbuster import blockbuster_ctx
from hypothesis import settings

settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile("ci", max_examples=200, deadline=None)
settings.register_profile("night", max_examples=5_000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if "CI" in os.environ else "dev"))


@pytest.fixture(autouse=True)
def no_blocking_call_in_the_loop(request: pytest.FixtureRequest) -> Iterator[None]:
    """An asynchronous test fails when it blocks its own event loop."""
    if inspect.iscoroutinefunction(getattr(request, "function", None)):
        with blockbuster_ctx():
            yield
    else:
        yield
