"""What tests cost: CPU seconds, those of child processes included, and the tests known to take many of them."""

import os
import resource
import time
import zlib
from collections.abc import Mapping
from multiprocessing.forkserver import _forkserver
from pathlib import Path

LIMIT = 5.0
"""CPU seconds above which a test needs a reason below. No test fails for its time: a report names those without one."""

STARTS_A_BROWSER = "starts Chromium"
STARTS_PROCESSES = "each of its processes imports torch"
READS_RECORDS = "reads the recorded results of all papers' tables"
LONG = {
    "tests/playground/test_playground_page.py::test_somebody_types_a_string_and_steps_through_it": STARTS_A_BROWSER,
    "tests/playground/test_playground_page.py::test_net_machine_and_task_agree_under_node_and_with_python": (
        "certifies two nets"
    ),
    "tests/training/test_state_supervision.py::test_what_pieces_do_is_learned": "trains a net",
    "tests/test_extending.py::test_members_of_one_file_keep_all_contracts": "runs the contract tests",
    "tests/faults/test_kills.py::test_a_run_killed_often_equals_an_undisturbed_one": STARTS_PROCESSES,
    "tests/faults/test_kills.py::test_a_sweep_killed_often_loses_no_finished_run": STARTS_PROCESSES,
    "tests/faults/test_kills.py::test_a_signal_to_stop_says_how_to_go_on": STARTS_PROCESSES,
    "tests/faults/test_kills.py::test_the_second_process_on_a_run_is_refused": STARTS_PROCESSES,
    "tests/faults/test_kills.py::test_a_worker_killed_while_it_holds_what_is_shared_stops_no_parent": STARTS_PROCESSES,
    "tests/training/test_ranks.py::test_two_processes_do_what_one_does": STARTS_PROCESSES,
    "tests/faults/test_damage.py::test_a_full_disk_is_said_and_nothing_is_lost": STARTS_PROCESSES,
    "tests/faults/test_fuzz.py::test_requests_made_up_at_random_end_with_a_sentence": "runs eight commands",
    "tests/test_examples.py::test_commands_run": "trains and certifies a net for each command of a page",
    "tests/test_examples.py::test_python_of_the_tutorial_runs_from_top_to_bottom": "trains and certifies several nets",
    "tests/test_examples.py::test_python_of_a_page_runs_from_top_to_bottom": "trains and certifies several nets",
    "tests/test_examples.py::test_python_about_nets_of_ones_own_runs": "trains a net and certifies three",
    "tests/test_examples.py::test_python_of_the_page_about_certificates_runs_with_as_many_strings_as_it_takes": (
        "certifies a net and checks the certificate, with all their strings"
    ),
    "tests/test_examples.py::test_benchmarks_run": "compares forms at the lengths where they differ in speed",
    "tests/training/test_training.py::test_consistency_brings_the_states_of_one_string_together": "trains four nets",
    "tests/cli/test_proofs.py::test_what_was_written_is_checked": "certifies a net, and proves it twice",
    "tests/faults/test_cut_off_folders.py::"
    "test_a_command_that_was_killed_at_any_write_goes_through_the_next_time": "kills each command at all its writes",
    "tests/test_wheel.py::test_commands_of_an_installed_wheel_find_the_records": "builds and installs a wheel",
    "tests/cli/test_leaderboard.py::test_a_model_of_ones_own_joins_those_on_record": "trains eight nets",
    "tests/cli/test_cli.py::test_demo_at_smoke_scale": "trains, measures and certifies six nets",
    "tests/certification/test_grids.py::test_no_net_with_a_wrong_cell_that_matters_is_certified": "certifies 16 nets",
    "tests/automata/test_grid_machine.py::test_every_single_wrong_entry_that_matters_is_found": "compares 150 rules",
    "tests/automata/test_grid_machine.py::test_a_rule_that_errs_once_it_has_counted_far_is_found": (
        "searches the columns of rules with a hundred classes"
    ),
    "tests/cli/test_cli.py::test_ctrl_c_keeps_the_checkpoint": STARTS_PROCESSES,
    "tests/cli/test_catalogue.py::test_the_stored_index_is_what_the_registries_say": "makes every experiment and task",
    "tests/runs/test_runs.py::test_the_pool_gives_the_same_bits_as_one_process": STARTS_PROCESSES,
    "tests/runs/pools/test_shared.py::test_processes_that_share_a_folder_do_each_run_once": STARTS_PROCESSES,
    "tests/test_examples.py::test_commands_of_the_page_about_examples_run": "trains a net and certifies it",
    "tests/learning/test_learned.py::test_a_machine_is_recovered_and_proved": "trains two nets and certifies one",
    "tests/learning/test_learned.py::test_traces_are_learned_symbol_by_symbol": "trains two nets and certifies one",
    "tests/certification/test_checker_mutations.py::test_no_false_claim_is_accepted": "runs each net that is accepted",
    "tests/certification/test_checker_mutations.py::test_no_changed_byte_is_accepted": "checks thousands of files",
    "tests/faults/test_cut_off_folders.py::test_a_command_whose_disk_was_full_goes_through_the_next_time": (
        "runs each command twice"
    ),
    "tests/faults/test_cut_off_folders.py::test_a_search_that_is_stopped_leaves_its_best_net": "searches twice",
    "tests/runs/test_certified.py::test_a_certificate_that_was_forged_for_another_model_is_refused": (
        "certifies four nets, each of which is read again"
    ),
    "tests/certification/test_certify.py::test_chunks_of_three_and_double_precision_are_certified_too": (
        "certifies two nets"
    ),
    "tests/contracts/test_pool_contract.py::"
    "test_every_job_has_its_result_and_an_error_is_of_one_job_alone": STARTS_PROCESSES,
    "tests/contracts/test_format_contract.py::test_any_machine_it_holds_comes_back": "writes hundreds of machines",
    "tests/test_examples.py::test_python_of_the_readme_runs": "trains and certifies two nets",
    "tests/report/test_claims.py::test_the_page_is_what_the_records_of_the_checkout_say": READS_RECORDS,
    "tests/report/test_claims.py::test_what_a_page_says_first_of_a_table_is_what_its_claims_say": READS_RECORDS,
    "tests/report/test_claims.py::"
    "test_every_claim_has_a_verdict_and_what_was_run_a_number_or_test_page_and_command": READS_RECORDS,
    "tests/studies/test_regular_gpt_tables.py::test_one_cell_is_run_alone_and_once": STARTS_PROCESSES,
    "tests/studies/test_regular_gpt_chunks.py::test_the_page_and_its_choices_are_made_of_records_alone": (
        "runs an experiment, then makes its page from records alone"
    ),
    "tests/runs/test_other_tasks.py::test_table_2_is_made_of_records_alone": (
        "runs an experiment, then makes its page from records alone"
    ),
    "tests/runs/test_records.py::test_runs_that_diverged_are_on_record_until_they_have_a_result": (
        "makes a page six times from records alone"
    ),
    "tests/runs/test_records.py::test_a_page_is_made_of_records_alone_and_says_what_is_missing": (
        "runs an experiment, then makes its page twice from records alone"
    ),
    "tests/contracts/test_experiment_contract.py::test_runs_at_smoke_scale_and_writes_its_page": "trains two nets each",
}
"""Tests that may take longer, each with the reason; they run first."""

NOT_QUICK = ("tests/faults/", "tests/test_examples.py", "tests/contracts/test_experiment_contract.py")
"""What `make quick` leaves out, besides `LONG`: these start processes, or train nets of every kind."""


def name_of(nodeid: str) -> str:
    """The test's name without its case: ``tests/ops/test_scan.py::test_forms[3-float32]`` without the brackets."""
    return nodeid.partition("[")[0]


def sampled(cases: Mapping[str, Mapping[str, object]], every: int | None = None) -> set[str]:
    """The names of the cases of a test that are run by default: every n-th, or enough that each value is in one.

    A case has a value of each parameter. Which values are in one case is arbitrary, and always the same.
    """
    if every is not None:
        return set(list(cases)[::every])
    chosen, seen = set(), set()
    for name in sorted(cases, key=lambda name: zlib.crc32(name.encode())):
        values = set(cases[name].items())
        if values - seen:
            chosen.add(name)
            seen |= values
    return chosen


def deal(nodeids: list[str], num_workers: int) -> list[int]:
    """The order of the tests such that each worker's share, an equal slice of it, begins with its part of `LONG`.

    Those of one file are of one worker, which reads what they share once. pytest-xdist deals slices of the collection
    to its workers (``--dist=worksteal``).
    """
    long = [index for index, nodeid in enumerate(nodeids) if name_of(nodeid) in LONG]
    files = list(dict.fromkeys(nodeids[index].partition("::")[0] for index in long))
    short = [index for index, nodeid in enumerate(nodeids) if name_of(nodeid) not in LONG]
    order, start = [], 0
    for worker in range(num_workers):
        own = files[worker::num_workers]
        share = [index for index in long if nodeids[index].partition("::")[0] in own]
        size = len(nodeids) * (worker + 1) // num_workers - len(nodeids) * worker // num_workers
        stop = max(start, start + size - len(share))
        order += share + short[start:stop]
        start = stop
    return order + short[start:]


def by_file(seconds: Mapping[str, float]) -> dict[str, float]:
    """What each file's tests took together, fixtures included."""
    sums: dict[str, float] = {}
    for nodeid, value in seconds.items():
        file = nodeid.partition("::")[0]
        sums[file] = sums.get(file, 0.0) + value
    return sums


def largest(seconds: Mapping[str, float], count: int) -> list[str]:
    """Lines for the largest of them, all with `count` 0."""
    names = sorted(seconds, key=seconds.__getitem__, reverse=True)
    return [f"{seconds[name]:7.1f} CPU s  {name}" for name in names[: count or None]]


def cpu_seconds() -> float:
    """Of this process, of its children that have ended, and of the fork server with all that it has started."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime + _fork_server_seconds()


def _fork_server_seconds() -> float:
    """From Linux's ``/proc``; elsewhere these seconds are counted when the tests end, and not test by test."""
    status = Path(f"/proc/{_forkserver._forkserver_pid}/stat")
    if not status.exists():
        return 0.0
    ticks = status.read_text(encoding="utf-8").rpartition(")")[2].split()[11:15]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def stop_fork_server() -> None:
    """So that its CPU seconds are among those of the children that have ended."""
    _forkserver._stop()
