import csv
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from synthetic_runs import MeasuredRun, synthetic_run

from lengthwise.certification.certify import certify
from lengthwise.constructions import construct
from lengthwise.report.pages.run import write_report
from lengthwise.runs.folder import RunFolder
from lengthwise.runs.result import RunStatus
from lengthwise.runs.spec import make_spec
from lengthwise.tasks import make_task


class Addresses(HTMLParser):
    """Every address in an attribute, and the text of every table cell."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.cells: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "href", "srcset", "action") and value]

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] in ("td", "th"):
            self.cells.append(data)


def parsed(page: Path) -> Addresses:
    parser = Addresses()
    parser.feed(page.read_text(encoding="utf-8"))
    return parser


def test_a_report_has_a_page_pictures_and_a_file_of_points(tmp_path: Path) -> None:
    runs = [synthetic_run(task, seed=seed) for task in ("parity", "even-pairs") for seed in (0, 1)]
    page = tmp_path / "new folder" / "out.html"
    paths = write_report(runs, page)
    assert [path.name for path in paths] == [
        *("out.html", "out-accuracy.png", "out-accuracy.svg", "out-loss.png", "out.csv")
    ]
    assert sorted(page.parent.iterdir()) == sorted(paths)
    contents = [path.read_bytes() for path in paths]
    assert contents[1].startswith(b"\x89PNG\r\n\x1a\n")
    assert contents[2].startswith(b"<svg")
    assert contents[3].startswith(b"\x89PNG\r\n\x1a\n")
    assert len(list(csv.reader(contents[4].decode().splitlines()))) == 1 + 4 * (20 + 2 + 2)


def test_the_page_loads_nothing(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    write_report([synthetic_run()], page)
    parser = parsed(page)
    assert "link" not in parser.tags
    assert parser.tags.count("script") == 2
    assert {address for address in parser.addresses if "//" in address} == set()
    assert "default-src 'none'" in page.read_text(encoding="utf-8")
    assert not re.search(r"@import|url\(", page.read_text(encoding="utf-8").partition("</style>")[0])


def test_the_numbers_are_on_the_page(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    run = synthetic_run(num_correct=lambda length, num_strings: num_strings - (length == 50))
    write_report([run], page)
    cells = parsed(page).cells
    assert {"parity", "99.98 %", "99.60 % at 50", "30.2", "25,216"} <= set(cells)
    text = page.read_text(encoding="utf-8")
    assert "In one pass, the net reads 256 random strings" in text
    assert "parity 50.00 %" in text
    assert "final weights, averaged over steps" in text
    assert "0123abc" in text
    assert "[train.optimizer]" in text


def test_unbalanced_lengths_have_a_section_of_their_own(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    write_report([synthetic_run(is_balanced=lambda length: length % 2 == 0)], page)
    assert "Unbalanced lengths</h3>" in page.read_text(encoding="utf-8")
    write_report([synthetic_run()], page)
    assert "Unbalanced lengths</h3>" not in page.read_text(encoding="utf-8")


@pytest.mark.usefixtures("fewer_strings")
def test_runs_of_one_seed_and_other_settings_each_have_their_certificate(tmp_path: Path) -> None:
    certificate = certify(construct("rnn", make_task("parity")).model, make_task("parity"))
    runs = [synthetic_run("parity", settings) for settings in ({}, {"train": {"batch_size": 32}})]
    certified = [run._replace(result=run.result.model_copy(update={"certificate": certificate})) for run in runs]
    write_report(certified, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    certificates = page.partition("<h2>Certificates</h2>")[2].partition("<h2>")[0]
    assert len(set(re.findall(r"parity, regular-gpt[^<]* seed 0", certificates))) == 2


def test_what_runs_say_of_themselves_is_escaped(tmp_path: Path) -> None:
    run = synthetic_run()
    spec = run.result.spec | {"model": run.result.spec["model"] | {"name": "</script><b>bold"}}
    changes = {"spec": spec, "versions": {"commit": "<i>&amp;"}, "weights": "</p><p>"}
    page = tmp_path / "report.html"
    write_report([run._replace(result=run.result.model_copy(update=changes))], page)
    parser = parsed(page)
    assert not {"b", "i"} & set(parser.tags)
    assert parser.tags.count("script") == 2
    assert "&lt;i&gt;&amp;amp;" in page.read_text(encoding="utf-8")


def test_a_run_that_is_not_finished_is_refused(tmp_path: Path) -> None:
    spec = make_spec("parity", "regular-gpt", {"train": {"steps": 2000}}, seed=4)
    folder = RunFolder(tmp_path / spec.id)
    folder.create(spec)
    folder.write_status(RunStatus(status="interrupted", step=120))
    unfinished = MeasuredRun(folder, [], None)
    with pytest.raises(ValueError, match=r"interrupted, step 120 of 2,000.*`lengthwise resume .*` continues it"):
        write_report([synthetic_run(), unfinished], tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


def test_no_run_and_the_same_run_twice_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected at least one finished run"):
        write_report([], tmp_path / "report.html")
    with pytest.raises(ValueError, match="given twice"):
        write_report([synthetic_run(), synthetic_run()], tmp_path / "report.html")


def test_a_run_without_metrics_still_has_a_report(tmp_path: Path) -> None:
    assert write_report([synthetic_run()._replace(metrics=[])], tmp_path / "report.html")


def test_a_run_measured_at_long_lengths_only_still_has_a_report(tmp_path: Path) -> None:
    run = synthetic_run()
    nothing = run.result.long.between(0, 0)
    long_only = run.result.model_copy(update={"dense": nothing, "structured": nothing})
    page = tmp_path / "report.html"
    write_report([run._replace(result=long_only)], page)
    assert "dense range:" not in page.read_text(encoding="utf-8")
