"""What hardware tests once did on an instance of Neuron SDK 2.33, each defect with the tests that hold it right."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.cases import each
from tests.house.sources import nodes_of

TESTS = Path(__file__).parents[1]

NEURON, WAYS, TIME = "targets.test_neuron_device", "targets.test_neuron_ways", "targets.test_device_time"
OPERATOR, FOUND, TIMING = "targets.test_neuron_operator", "targets.test_examination", "targets.test_timing"
NATIVE, HARDWARE, IN = (
    "pytest_plugin.test_native_torch",
    "pytest_plugin.test_hardware",
    "pytest_plugin.test_hardware_ways",
)
TODAY = f"{NATIVE}.test_a_trn2_of_today"
HELD_BY = {
    # Trn2 and Trn3 with the native backend of torch
    "every file that imports torch failed at collection": [TODAY, "cli.test_compare.test_targets_that_agree"],
    "torch tensors had no way but torch-xla": [TODAY, f"{NEURON}.test_the_version_of_torch_neuronx_says_the_way"],
    "kernels of NumPy arrays could not be timed": [TODAY, f"{TIME}.test_nki_alone_can_be_timed_by_nrtpy"],
    "the degree of a kernel was not said to the runtime": [
        f"{NEURON}.test_trn2_joins_its_cores",
        "targets.test_units.test_processes_of_two_degrees_share_physical_cores",
        f"{NEURON}.test_a_kernel_of_another_degree_is_not_run",
        f"{HARDWARE}.test_a_kernel_of_two_cores_gets_a_process_of_its_degree",
        f"{TIMING}.test_the_peak_is_that_of_the_cores_a_kernel_has",
    ],
    "modules as a baseline were torch-xla's only": [
        TODAY,
        f"{OPERATOR}.test_a_torch_module_is_compiled_without_a_device",
        f"{OPERATOR}.test_a_torch_module_is_a_baseline",
        f"{OPERATOR}.test_a_torch_module_is_a_baseline_under_torch_compile",
    ],
    "operators on newer chips are refused": [f"{OPERATOR}.test_newer_chips_have_no_custom_operators"],
    "narrow dtypes did not go to torch": [TODAY, f"{WAYS}.test_narrow_dtypes_go_both_ways_by_torch"],
    "an error came out of a later test": [TODAY, f"{HARDWARE}.test_what_a_device_does_wrong_fails_one_test"],
    "NKI_SIMULATOR made hardware tests green without hardware": [TODAY],
    "a tensor that is on the device was moved again": [TODAY],
    "prints were promised where AWS writes none": [
        "pytest_plugin.test_prints_fixture.test_a_test_of_prints_is_skipped_where_there_are_none",
        f"{HARDWARE}.test_hardware_tests_run_on_the_device_in_one_process",
    ],
    "versions of Python of AWS's wheels were not tested": [
        "house.test_pythons.test_the_guide_has_the_versions_of_each_image",
        "house.test_pythons.test_each_version_of_an_image_is_declared_and_tested",
    ],
    # Trn1 and Inf2
    "which packages still fit them was not said": [
        f"{NEURON}.test_the_version_of_torch_neuronx_says_the_way",
        f"{IN}.test_torch_xla_runs_and_times",
    ],
    "legacy kernels failed in AWS's compiler from SDK 2.30 on": [
        f"{NEURON}.test_a_compiler_that_is_too_new_for_the_legacy_dialect_is_named",
        f"{FOUND}.test_an_inf2_with_torch_xla",
    ],
    "nki on chips that AWS's pages do not name": [
        "facts.test_known_faults.test_nki_on_a_chip_that_awss_pages_do_not_name"
    ],
    "the native backend on a chip that it does not take": [
        f"{NEURON}.test_the_version_of_torch_neuronx_says_the_way",
        f"{FOUND}.test_an_inf2_of_today_without_the_packages_of_torch_xla",
    ],
    "libraries of AWS's loader were not looked for": [
        f"{OPERATOR}.test_the_libraries_of_the_loader_are_looked_for",
        f"{OPERATOR}.test_the_loader_is_looked_for",
    ],
    "operators were not simulated beside the native backend": [
        "customop.test_torch_stand_in.test_the_native_backend_has_no_loader_to_hide"
    ],
    "legacy kernels of NumPy arrays": [f"{IN}.test_kernels_of_the_legacy_dialect_run_as_they_are"],
    # Timing
    "the round trip of the host was the time of a kernel": [
        TODAY,
        f"{TIMING}.test_the_time_of_the_device_is_what_is_judged",
        f"{TIME}.test_nrtpy_launches_and_times_a_neff",
        f"{TIME}.test_a_launch_on_two_cores_counts_once",
        f"{TIME}.test_the_command_line_measures_where_nrtpy_is_not",
    ],
    "the front end of NKI was in each round": [
        f"{WAYS}.test_jax_runs_the_front_end_once",
        f"{WAYS}.test_torch_xla_times_a_graph_that_was_recorded_before",
    ],
    "a round trip gave bandwidth and utilisation": [f"{TIMING}.test_a_round_trip_alone_gives_no_utilisation"],
    "compile time did not say whether a cache answered": [
        f"{TIME}.test_the_compile_time_says_whether_a_cache_answered",
        f"{WAYS}.test_the_cache_of_a_way_is_that_of_its_compiler",
    ],
    "events of torch.neuron are times of the host": [
        f"{WAYS}.test_every_round_ends_when_the_device_has_finished",
        f"{WAYS}.test_the_events_of_the_native_backend_are_known_to_be_the_hosts",
    ],
    "a round ends when the device has finished": [
        f"{WAYS}.test_every_round_ends_when_the_device_has_finished",
        f"{WAYS}.test_torch_xla_times_a_graph_that_was_recorded_before",
    ],
    # JAX
    "a CPU of JAX's was taken for a NeuronCore": [
        f"{NEURON}.test_jax_on_a_cpu_is_no_neuroncore",
        f"{WAYS}.test_jax_arrays_run_on_the_platform_neuron",
    ],
    "JAX's plugin was not among the packages": [f"{FOUND}.test_a_trn2_with_jax"],
    "the plugin that times NumPy arrays is libneuronxla": [
        f"{WAYS}.test_numpy_arrays_are_timed_by_jax_where_its_plugin_is"
    ],
    "Pallas functions and prints by JAX on a NeuronCore": [
        "targets.test_devices.test_a_jax_function_has_no_neuroncore"
    ],
    # What doctor says
    "machines were described by what is on the path": [
        f"{FOUND}.test_a_trn2_of_today",
        f"{FOUND}.test_a_trn2_with_jax",
        f"{FOUND}.test_an_instance",
        f"{FOUND}.test_an_inf2_with_torch_xla",
        f"{FOUND}.test_an_inf2_of_today_without_the_packages_of_torch_xla",
        f"{FOUND}.test_variables_that_mean_nothing_are_named",
    ],
    "the driver's words were not the driver's": [
        f"{NEURON}.test_the_generation_is_the_drivers",
        f"{NEURON}.test_an_inf2_is_known_by_its_cores_and_by_the_product",
    ],
}


@each("defect", HELD_BY)
def test_each_defect_has_a_test(defect: str) -> None:
    """Every test of the table exists: in the text of its file, which cannot be imported where torch is absent."""
    for path in HELD_BY[defect]:
        *places, name = path.split(".")
        file = TESTS.joinpath(*places).with_suffix(".py")
        assert name in {node.name for node in nodes_of(file) if isinstance(node, ast.FunctionDef)}, path
