"""What operators, files and machines once did to a session, each with the tests that hold it right."""

from __future__ import annotations

from importlib import import_module

from tests.cases import each

CALL, WORDS, CORES = "customop.test_returned_call", "customop.test_compiler_words", "customop.test_cores"
ISOLATION, HOSTILE, WHOLE = "customop.test_isolation", "record.saved.test_hostile", "record.test_whole_file"
HELD_BY = {
    "an operator that wrote over its own call ended Python": [
        f"{CALL}.test_a_write_through_the_shared_memory_is_a_finding",
        f"{CALL}.test_an_operator_cannot_cut_the_shared_memory_off",
        f"{CALL}.test_every_count_has_its_limits",
        f"{CALL}.test_no_word_of_the_shared_memory_hurts_the_session",
    ],
    "shape functions ran in the session": [
        f"{CALL}.test_debug_survives_every_shape_function",
        f"{CALL}.test_torchs_meta_device_survives_every_shape_function",
    ],
    "a kernel that left with status 0 was green": [
        f"{CALL}.test_a_kernel_that_leaves_with_status_0_is_a_crash",
        f"{CALL}.test_a_shape_function_that_leaves_is_a_crash",
        f"{CALL}.test_a_core_of_eight_that_leaves_is_a_crash",
    ],
    "the compiler's words were hidden behind a false reason": [
        f"{WORDS}.test_the_compilers_error_comes_first",
        f"{WORDS}.test_our_remarks_are_no_words_of_the_compiler",
        f"{WORDS}.test_a_name_that_is_not_documented_is_one_finding",
    ],
    "stdout took all memory": [f"{CALL}.test_what_is_written_to_stdout_is_capped_and_said"],
    "processes, and their memory together, had no limit": [f"{ISOLATION}.test_processes_are_limited"],
    "Ctrl-C in an operator was a traceback of its worker, one in a build waited for the compilers": [
        f"{ISOLATION}.test_an_interrupt_leaves_nothing_running",
        "customop.test_build.test_ctrl_c_ends_compilers_and_what_they_have_started",
    ],
    "races by reading were silent": [f"{CORES}.test_an_element_that_another_core_writes_is_no_input"],
    "sources below some paths did not build, or had no line": [f"{WORDS}.test_sources_below_every_path_build"],
    "the 65th block was refused": [
        f"{CORES}.test_the_pool_is_as_many_blocks_as_fit",
        f"{CORES}.test_a_block_of_a_later_chunk_is_guarded",
    ],
    "a damaged saved run was a traceback, and exit code 1": [
        f"{HOSTILE}.test_a_damaged_run_is_one_sentence",
        f"{HOSTILE}.test_the_sentence_names_the_file",
        f"{HOSTILE}.test_a_small_file_cannot_fill_the_memory",
        f"{HOSTILE}.test_no_file_leads_to_a_traceback",
    ],
    "names out of files commanded terminals and logs": [
        f"{HOSTILE}.test_names_out_of_a_file_command_nothing",
        f"{WORDS}.test_the_words_of_a_hostile_source_command_nothing",
    ],
    "signals that are no crash were explained by stray writes": [
        f"{ISOLATION}.test_a_signal_that_is_no_crash_is_called_by_its_name"
    ],
    "CXX with arguments was not there": [f"{WORDS}.test_cxx_may_have_arguments"],
    "an exception of a shape function was the kernel's": [f"{CALL}.test_debug_survives_every_shape_function"],
    "a full disk was an old compiler, or left files that were cut off": [
        "customop.test_build.test_a_full_disk_is_reported",
        f"{WHOLE}.test_a_full_disk_leaves_the_old_file_or_none",
        f"{WHOLE}.test_a_report_on_a_full_disk_is_a_sentence_a_file",
        "cli.test_new.test_a_full_disk_is_a_sentence",
    ],
    "tensors larger than memory were an error of NumPy": [
        "launch.test_host_memory.test_no_memory_is_taken_for_what_is_too_large"
    ],
    "raw accesses beyond blocks and tensors were silent": [
        f"{ISOLATION}.test_a_write_before_a_block_is_found_at_its_line",
        "customop.test_accessors.test_what_is_undefined_is_reported_and_nothing_else",
        "customop.test_adversarial.test_the_figures",
    ],
    "exceptions and exits were told at the kernel's first line": [
        f"{ISOLATION}.test_a_kernel_that_leaves_is_reported",
        "customop.test_adversarial.test_the_figures",
    ],
    "the name of an operator could be no constant": ["customop.test_sources.test_names_may_be_macros_and_constants"],
    "at::Tensor and torch/extension.h were refused for a false reason": [
        f"{WORDS}.test_what_other_extensions_have_is_refused_with_its_remedy"
    ],
    "size(i) in a shape function was a finding a use": [f"{WORDS}.test_a_name_that_is_not_documented_is_one_finding"],
    "a process of its own session kept the call waiting": [
        f"{ISOLATION}.test_a_child_in_a_session_of_its_own_ends_with_the_call"
    ],
    "stored elements were called unwritten": [
        f"{CORES}.test_an_element_that_was_stored_is_not_unwritten",
        "customop.test_folded.test_one_cause_is_one_finding",
        "customop.test_folded.test_what_has_another_cause_stays",
    ],
    "messages were no sentences": [
        "customop.test_sentences.test_every_message_is_a_whole_sentence",
        "customop.test_sentences.test_ranges_are_boxes",
    ],
    "the plugin changed sessions of projects that do not use it": [
        "pytest_plugin.test_neighbours.test_a_project_without_us_is_as_it_would_be",
        "pytest_plugin.test_neighbours.test_marks_of_tests_without_our_fixtures",
    ],
    "Ctrl-C and exceptions became others": [
        "record.test_source_sites.test_an_exception_of_code_without_lines_stays_itself",
        "cli.test_interrupts.test_while_a_script_imports",
        "cli.test_interrupts.test_inside_an_instruction",
        "cli.test_interrupts.test_while_a_page_is_written",
        "pytest_plugin.test_ctrl_c.test_the_place_is_that_of_the_kernel",
    ],
    "endless loops on the device hung": [
        "language.test_endless_loops.test_a_condition_that_nothing_changes_is_refused",
        "language.test_endless_loops.test_every_loop_has_a_limit",
    ],
}


@each("defect", HELD_BY)
def test_each_defect_has_a_test(defect: str) -> None:
    """Every test of the table exists."""
    for path in HELD_BY[defect]:
        module, name = path.rsplit(".", 1)
        assert callable(getattr(import_module(f"tests.{module}"), name))
