"""Every scenario of tests/conformance against every engine, through the Python package: `engine/group/name`."""

import asyncio
import json

import pytest

from runner.places import ENGINES, LANGUAGE, ROOT, Place, Redis
from runner.run import run

# Scenarios wait more than they work.
_AT_ONCE = 8

_SCENARIOS = {
    f"{group['group']}/{scenario['name']}": scenario
    for file in sorted((ROOT / "tests/conformance").glob("*.json"))
    if not file.name.endswith(".schema.json")
    for group in [json.loads(file.read_text())]
    for scenario in group["scenarios"]
}


@pytest.fixture(scope="session")
def outcomes(request):
    """Runs what was selected, several at a time: engine and name to what went wrong, if anything."""
    chosen = [item.callspec.params for item in request.session.items if "scenario" in getattr(item, "fixturenames", ())]

    async def one(engine, name, turn):
        async with turn:
            place = Place(engine, redis and redis.url)
            try:
                await run(_SCENARIOS[name], place, ENGINES[engine] + LANGUAGE)
            except Exception as error:
                return error
            finally:
                place.end()

    async def everything():
        turn = asyncio.Semaphore(_AT_ONCE)
        pairs = [(params["engine"], params["scenario"]) for params in chosen]
        return dict(zip(pairs, await asyncio.gather(*(one(*pair, turn) for pair in pairs))))

    redis = Redis() if any(params["engine"] == "redis" for params in chosen) else None
    try:
        outcomes = asyncio.run(everything())
    finally:
        if redis is not None:
            redis.stop()
    for engine in ENGINES:
        executed = sorted(name for of, name in outcomes if of == engine)
        if len(executed) == len(_SCENARIOS):
            lists = ROOT / "target/conformance"
            lists.mkdir(parents=True, exist_ok=True)
            (lists / f"python-{engine}.txt").write_text("".join(f"{name}\n" for name in executed))
    return outcomes


@pytest.mark.parametrize("scenario", _SCENARIOS)
@pytest.mark.parametrize("engine", ENGINES)
def test_scenario(outcomes, engine, scenario):
    wrong = outcomes[engine, scenario]
    if wrong is not None:
        raise wrong
