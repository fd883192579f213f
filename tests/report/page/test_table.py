"""What pages once did wrong, each with the tests that hold it right."""

from __future__ import annotations

from importlib import import_module

from tests.cases import each

HELD_BY = {
    "producers were guessed from ranges of bytes": [
        "test_provenance.test_blocks_of_columns_in_hbm",
        "test_provenance.test_steps_and_accumulation",
        "test_defects.test_producers_are_those_of_the_dependences",
    ],
    "the way back ended at ranks; memory that nothing wrote was an argument": [
        "test_provenance.test_ranks_indices_and_unwritten_memory"
    ],
    "rounded values and means of blocks were called exact": [
        "test_truth.test_exact_numbers_are_those_of_the_run",
        "test_truth.test_one_wrong_element_of_many_is_seen",
        "test_tiles.test_a_picture_keeps_to_its_share_and_hides_nothing",
        "test_tiles.test_a_summary_keeps_to_its_share",
    ],
    "a run without lines threw on load": ["test_truth.test_a_run_without_lines_opens"],
    "a passing test was red": [
        "test_truth.test_a_passing_test_is_never_red",
        "test_truth.test_the_stated_tolerance_is_that_of_numpy",
    ],
    "the memory chart ended after 20,000 lives": ["test_truth.test_every_life_of_a_long_run_is_in_the_memory_chart"],
    "very long runs threw and were far beyond the budget": [
        "test_page.TestLarge.test_20000_instructions_and_500_prints_stay_usable",
        "test_tiles.test_shares_stay_within_the_budget",
        "test_truth.test_numbers_of_very_many_tiles_say_that_they_are_rounded",
    ],
    "outputs with NaN were green": ["test_truth.test_nan_in_an_output_is_the_verdict"],
    "equal findings were an article each": ["test_truth.test_findings_of_one_line_are_one_article"],
    "cores and ranks were not parted": [
        "test_truth.test_outputs_of_ranks_are_headed_by_rank",
        "test_time.test_lanes_of_cores_and_ranks_are_named",
    ],
    "badges covered code, narrow pages overflowed": ["test_defects.test_nothing_covers_code_and_all_can_be_read"],
    "nothing could be searched, linked or saved": [
        "test_defects.test_all_is_found_by_words",
        "test_defects.test_an_address_brings_back_what_was_shown",
        "test_defects.test_a_file_of_a_tile_has_its_values",
    ],
    "contrast was low, tabs had no arrow keys": [
        "test_defects.test_nothing_covers_code_and_all_can_be_read",
        "test_defects.test_arrow_keys_go_from_pane_to_pane",
    ],
    "colours changed their meaning from turn to turn": ["test_defects.test_an_address_brings_back_what_was_shown"],
}


@each("defect", HELD_BY)
def test_each_defect_has_a_test(defect: str) -> None:
    """Every test of the table exists."""
    for path in HELD_BY[defect]:
        module, *names = path.split(".")
        found = import_module(f"tests.report.page.{module}")
        for name in names:
            found = getattr(found, name)
        assert callable(found)
