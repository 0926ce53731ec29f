"""Each fault that loses data when the power goes is noticed; each in the history that noticed it last."""

from __future__ import annotations

import pytest

from proofs.power.plants import NOT_NOTICED, POWER_CUTS, Plant, PlantError, planted, plants
from proofs.power_cuts import run_all
from proofs.power_plants import Notice, complaint, noticed
from seglog_format.storage import files

CUT = [plant for plant in plants() if plant.noticed_by == POWER_CUTS]
HARMLESS = [plant for plant in plants() if plant.noticed_by == NOT_NOTICED]


@pytest.mark.parametrize("plant", CUT, ids=lambda plant: plant.name)
def test_each_fault_is_noticed(plant: Plant) -> None:
    """A change of what is written may make other histories notice it: `python -m proofs power-plants` names one."""
    assert noticed(plant, most=0).problem, "name a history that notices it in plants.toml"


def test_the_same_histories_find_nothing_wrong_without_a_fault() -> None:
    endings = run_all(1, sorted({plant.histories[0] for plant in CUT}))
    assert [ending.problem for ending in endings if ending.problem] == []


@pytest.mark.parametrize("plant", HARMLESS, ids=lambda plant: plant.name)
def test_a_harmless_fault_has_its_reason_and_is_not_noticed(plant: Plant) -> None:
    assert plant.reason
    assert noticed(plant, most=300).history is None


def test_what_is_wrong_with_a_notice_is_told() -> None:
    cut, harmless = CUT[0], HARMLESS[0]
    assert complaint(Notice(cut, 3, 50, "lost")) == complaint(Notice(harmless, None, 50)) == ""
    assert complaint(Notice(cut, None, 50)) == f"{cut.name}: not noticed in 50 power cuts"
    assert complaint(Notice(harmless, 3, 50, "lost")) == f"{harmless.name}: counts as harmless, and yet: lost"


def test_a_fault_is_taken_out_again() -> None:
    before = files.write_file.__code__
    plant = next(plant for plant in CUT if plant.symbol == "write_file")
    with planted(plant):
        assert files.write_file.__code__ is not before
    assert files.write_file.__code__ is before


@pytest.mark.parametrize(
    ("symbol", "find", "problem"),
    [
        ("write_file", "no such text", "has this text 0 times"),
        ("LocalFiles.nothing", "", "is defined 0 times"),
    ],
)
def test_a_fault_that_no_longer_fits_is_refused(symbol: str, find: str, problem: str) -> None:
    plant = Plant(name="x", symbol=symbol, find=find, replace="")
    with pytest.raises(PlantError, match=problem), planted(plant):
        pass
