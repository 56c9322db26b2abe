"""Results of an experiment in one file, and pages of experiments that are not finished."""

import gzip
import shutil
from pathlib import Path

import pytest
from command import exit_code

from lengthwise.runs.folder import RunFolder
from lengthwise.runs.records import read_diverged, read_records, restore, write_records
from lengthwise.runs.result import RunStatus
from lengthwise.runs.spec import spec_from_json


def reproduce(folder: Path, *more: str) -> int:
    """Exit code of a smoke run of `regular-gpt/chunk-sizes`: six cells of a run each."""
    arguments = ["reproduce", "regular-gpt/chunk-sizes", "--scale", "smoke", "--pages", str(folder), *more]
    return exit_code(*arguments)


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A folder with a page, its records, and all runs of it; tests change a copy."""
    folder = tmp_path_factory.mktemp("finished")
    assert reproduce(folder, "--runs", str(folder / "runs")) == 0
    return folder


@pytest.fixture
def pages(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path, dirs_exist_ok=True))


def test_a_page_is_made_of_records_alone_and_says_what_is_missing(pages: Path, capsys) -> None:
    page, records = (
        pages / "regular-gpt-chunk-sizes-smoke.md",
        pages / "records" / "regular-gpt-chunk-sizes-smoke.jsonl.gz",
    )
    whole, data = page.read_text(), records.read_bytes()
    assert f"[{records.name}](records/{records.name})" in whole
    results = read_records(records)
    assert len(results) == 6

    assert reproduce(pages, "--runs", str(pages / "other"), "--recorded", "--page-only") == 0
    assert page.read_text() == whole
    assert records.read_bytes() == data

    write_records(records, results[:3])
    assert reproduce(pages, "--runs", str(pages / "third"), "--recorded", "--page-only") == 1
    output = capsys.readouterr().out
    assert "3 runs taken from" in output
    assert output.count("not run yet") == 3
    assert "## Without a result" in page.read_text()
    assert len(read_records(records)) == 3

    assert reproduce(pages, "--runs", str(pages / "none"), "--page-only") == 1
    assert "- 6 runs: no recorded result, because it has not been run yet or has diverged" in page.read_text(), (
        "many runs are counted, not named"
    )
    assert [result.run_id for result in read_records(records)] == [result.run_id for result in results[:3]]

    assert reproduce(pages, "--runs", str(pages / "third")) == 0
    assert [result.run_id for result in read_records(records)] == [result.run_id for result in results]


def test_a_record_without_a_newer_field_keeps_its_line(pages: Path) -> None:
    """An earlier version did not write the field `certificate`, so its records lack this field."""
    records = pages / "records" / "regular-gpt-chunk-sizes-smoke.jsonl.gz"
    lines = gzip.decompress(records.read_bytes()).decode().splitlines(keepends=True)
    field = '"certificate":null,'
    assert all(field in line for line in lines)
    older = [line.replace(field, "") for line in lines]
    for added in ([], lines[-1:]):  # the second time, the last run has no record yet
        kept = older[: len(older) - len(added)]
        # The last line of a file need not end with a line break, wherever its record is written.
        records.write_bytes(gzip.compress("".join([*kept[1:], kept[0].rstrip()]).encode()))
        assert reproduce(pages, "--runs", str(pages / "runs"), "--page-only") == 0
        assert gzip.decompress(records.read_bytes()).decode() == "".join([*kept, *added])
    write_records(records, [read_records(records)[0].model_copy(update={"evaluation_seconds": 0.25})])
    assert field in gzip.decompress(records.read_bytes()).decode(), "another result is a new line"


def test_runs_that_diverged_are_on_record_until_they_have_a_result(pages: Path) -> None:
    page, records = (
        pages / "regular-gpt-chunk-sizes-smoke.md",
        pages / "records" / "regular-gpt-chunk-sizes-smoke.jsonl.gz",
    )
    results = read_records(records)
    (folder,) = (RunFolder(path) for path in (pages / "runs").iterdir() if path.name == results[0].run_id)
    (folder.path / "result.json").unlink()
    folder.write_status(RunStatus(status="diverged", step=3, message="training diverged at step 3"))
    write_records(records, results[1:])
    assert reproduce(pages, "--runs", str(pages / "runs"), "--page-only") == 1
    whole, data = page.read_text(), records.read_bytes()
    assert f"({results[0].run_id}): Diverged: training diverged at step 3" in whole
    assert [run.run_id for run in read_diverged(records)] == [results[0].run_id]
    assert read_records(records) == results[1:]
    for _ in range(2):  # the second time its folder is there
        assert reproduce(pages, "--runs", str(pages / "other"), "--recorded", "--page-only") == 1
        assert (page.read_text(), records.read_bytes()) == (whole, data)
    assert reproduce(pages, "--runs", str(pages / "none"), "--page-only") == 1
    assert records.read_bytes() == data, "what is on record stays there"
    assert reproduce(pages, "--runs", str(pages / "other"), "--recorded") == 0
    assert read_diverged(records) == []


def test_records_do_not_stand_for_nets_that_are_looked_into(capsys) -> None:
    assert exit_code("reproduce", "linear-rnn/drift", "--scale", "smoke", "--recorded") == 2
    expected = (
        "--recorded: this experiment reads the weights of its nets, which records do not contain; leave out --recorded"
    )
    assert expected in capsys.readouterr().err


def test_restoring_keeps_what_is_there_and_leaves_out_what_would_be_another_run(pages: Path) -> None:
    first, second, *_ = read_records(pages / "records" / "regular-gpt-chunk-sizes-smoke.jsonl.gz")
    renamed = second.model_copy(update={"run_id": "parity-regular-gpt-seed0-of-an-older-version"})
    assert restore([first, renamed], pages / "runs").num_taken == 0
    gone = second.model_copy(update={"spec": second.spec | {"model": second.spec["model"] | {"gone": 1}}})
    assert restore([first, renamed, gone], pages / "empty").num_taken == 1
    (folder,) = (pages / "empty").iterdir()
    assert RunFolder(folder).read_result() == first
    assert RunFolder(folder).read_plan() == first.plan, "or else going on would measure it again"
    assert RunFolder(folder).read_spec() == spec_from_json(first.spec)


def test_of_results_of_one_run_the_one_of_the_larger_plan_is_restored(pages: Path) -> None:
    larger, *_ = read_records(pages / "records" / "regular-gpt-chunk-sizes-smoke.jsonl.gz")
    low, high = larger.plan.dense
    smaller = larger.model_copy(update={"plan": larger.plan.model_copy(update={"dense": (low, high - 1)})})
    folder = RunFolder(pages / "shared" / larger.run_id)
    for result, count, kept in ((smaller, 1, smaller), (larger, 1, larger), (smaller, 0, larger), (larger, 0, larger)):
        assert restore([result], pages / "shared").num_taken == count
        assert folder.read_result() == kept
        assert folder.read_plan() == kept.plan
    own = RunFolder(pages / "runs" / larger.run_id)
    own.write_result(smaller)
    assert restore([larger], pages / "runs").num_taken == 0, "its weights are there"
    assert own.read_result() == smaller


def test_records_that_other_measurements_keep_out_are_counted(pages: Path, capsys) -> None:
    first, *others = read_records(pages / "records" / "regular-gpt-chunk-sizes-smoke.jsonl.gz")
    low, high = first.plan.dense
    other_plan = first.plan.model_copy(update={"dense": (low, high - 1), "long": ((high + 1, 16),)})
    assert restore([first.model_copy(update={"plan": other_plan})], pages / "shared").num_taken == 1
    assert restore([first, *others], pages / "shared").num_kept_out == 1
    assert restore([first, *others], pages / "runs").num_kept_out == 0
    assert reproduce(pages, "--runs", str(pages / "shared"), "--recorded", "--page-only") == 1
    assert f"1 recorded result not taken, because {pages / 'shared'} has other measurements" in " ".join(
        capsys.readouterr().out.split()
    )


@pytest.mark.parametrize(
    ("change", "output"),
    [
        (lambda data: data[:-9], "damaged file"),
        (lambda data: b"no gzip", "damaged file"),
        (lambda data: gzip.compress(b"{}\n"), "not results of this version"),
    ],
)
def test_damaged_records_are_named(change, output: str, tmp_path: Path, capsys) -> None:
    records = tmp_path / "records" / "regular-gpt-chunk-sizes-smoke.jsonl.gz"
    write_records(records, [])
    assert read_records(records) == []
    records.write_bytes(change(records.read_bytes()))
    assert reproduce(tmp_path, "--recorded", "--runs", str(tmp_path / "runs")) == 2
    assert f"{records}: {output}" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_records_that_are_missing_are_named(tmp_path: Path, capsys) -> None:
    assert reproduce(tmp_path, "--recorded", "--runs", str(tmp_path / "runs")) == 2
    assert "there is no such file; name a file that `lengthwise reproduce` wrote" in capsys.readouterr().err


def test_a_file_with_a_changed_byte_is_named(tmp_path: Path) -> None:
    file = tmp_path / "records.jsonl.gz"
    file.write_bytes(gzip.compress(b"{}" * 500))
    whole = file.read_bytes()
    for index in range(10, len(whole)):
        file.write_bytes(whole[:index] + bytes([whole[index] ^ 0xFF]) + whole[index + 1 :])
        with pytest.raises(ValueError, match=r"records.jsonl.gz: (damaged file|not results of this version)"):
            read_records(file)
