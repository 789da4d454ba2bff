"""The table of the results."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from contestants import CONTESTANTS, PROCESS
from results import Results, Trial

from rig import machine
from rig.ratio import middle, ratio
from rig.table import Sheet, Table, milliseconds

JSON = "drivers.json"


def sheet(results: Results) -> Sheet:
    absent = [f"{name}: {why}" for name, why in results.absent.items()]
    return Sheet(_conditions(results), [_table(results)], absent)


def _conditions(results: Results) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in results.versions.items())
    trials = [trial for rounds in results.trials.values() for trial in rounds]
    disturbed = sum(trial.disturbed for trial in trials)
    return (
        machine.sentence(results.machine, results.started_at, results.finished_at)
        + f"{versions}. {results.rounds} rounds, the order shuffled in every round (seed "
        f"{results.seed}). A round in which others used more than {machine.DISTURBED_CORES} cores is "
        f"measured again, twice at most; {disturbed} of {len(trials)} are disturbed all the same."
    )


def _table(results: Results) -> Table:
    head = ["instance", "start to ready, ms", "CPU a request, us", "x process", "p50, ms", "p99, ms"]
    note = (
        f"One instance that answers at once, at {results.rate:g} requests/s for {results.window_s:g} s, "
        "started anew in every round; medians, and of the CPU's ratio also the lowest and highest of "
        "the rounds. The start is that of `tenfold up` as well. The CPU is that of all but the "
        "generator: the app, Tenfold, the balancer, and what the engine runs. Response times count "
        "from the intended send time."
    )
    return Table("One instance under each driver and balancer", head, list(_rows(results)), note)


def _rows(results: Results) -> Iterator[list[str]]:
    for contestant in CONTESTANTS:
        if contestant.name in results.absent:
            yield [contestant.name, "not measured", "", "", "", ""]
        elif trials := results.trials.get(contestant.name):
            yield [
                contestant.name,
                f"{median(trial.start_ms for trial in trials):.0f}",
                f"{median(_cpu(trials)):.0f}",
                _over_process(results, trials),
                milliseconds(middle([trial.p50_ms for trial in trials])),
                milliseconds(middle([trial.p99_ms for trial in trials])),
            ]


def _over_process(results: Results, trials: list[Trial]) -> str:
    process = results.trials.get(PROCESS)
    if process is None or process is trials:
        return ""
    return str(ratio(_cpu(trials), _cpu(process)))


def _cpu(trials: list[Trial]) -> list[float]:
    return [trial.cpu_us for trial in trials]
