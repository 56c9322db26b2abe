"""A folder for model hubs: weights, configuration, certificate, and a page about the model."""

from pathlib import Path

from lengthwise.certification.certificate import CERTIFICATE, Certificate
from lengthwise.display import literal, percent
from lengthwise.evaluation.length_curve import LengthCurve
from lengthwise.export.base import EXPORTS, Export, Options
from lengthwise.export.facts import certificate_of, graph_facts, level_and_digest
from lengthwise.files import is_empty, write_by_rename
from lengthwise.runs.hub import CONFIG, is_of_library, save_hub
from lengthwise.runs.machine_sources import doubt_about
from lengthwise.runs.result import RunResult
from lengthwise.runs.stored import StoredModel, load_stored


@EXPORTS.register("hub-folder")
class HubFolder(Export):
    """A folder of ``config.json``, ``model.safetensors``, ``README.md`` and, for a certified net, ``certificate.json``.

    Commands accept the folder like the folder of a compiled model.
    """

    has_weights = True
    is_folder = True

    @staticmethod
    def write(source: str, out: Path, options: Options) -> list[tuple[str, str]]:
        """Write the folder; users can then upload it to the Hugging Face Hub themselves."""
        options.check_given("hub-folder", ())
        if out.exists() and not out.is_dir():
            raise ValueError(f"{out}: expected a folder, got a file; name another folder")
        if out.is_dir() and not is_empty(out) and not is_of_library(out):
            raise ValueError(
                f"{out}: expected a new or empty folder, or one that an export wrote, got a folder with other files; "
                "name another folder"
            )
        stored = load_stored(Path(source))
        # Called for its checks: the model reads symbols, and the certificate is about this model.
        graph_facts(source, stored)
        certificate = certificate_of(source)
        run = stored.run
        spec = None if run is None else run.spec.to_json()
        save_hub(out, stored.model, stored.task, (stored.kind, stored.name), spec, stored.trained_to)
        if certificate is not None:
            write_by_rename(out / CERTIFICATE, certificate.to_text().encode())
        else:
            # A certificate of an earlier export would look like a certificate of these weights.
            (out / CERTIFICATE).unlink(missing_ok=True)
        write_by_rename(out / "README.md", model_card(stored, certificate, doubt_about(Path(source))).encode())
        files = f"{CONFIG}, model.safetensors, README.md{'' if certificate is None else f', {CERTIFICATE}'}"
        return [("certificate", level_and_digest(certificate)), ("wrote", f"{out}: {files}")]


def model_card(stored: StoredModel, certificate: Certificate | None, doubt: str | None = None) -> str:
    """Return the page about a model: task, protocol, seed, accuracy, certificate, and commands to use it.

    `doubt` is the reason why held-out labels do not confirm a machine that was learned from examples.
    """
    settings, run = stored.settings, stored.run
    name, task = settings["model"]["name"], settings["task"]["name"]
    lines = ["---", "library_name: lengthwise", "tags:", "- length-generalization", f"- {task}", f"- {name}", "---", ""]
    lines += [f"# {literal(name)} on {literal(task)}", "", "| | |", "|---|---|"]
    lines += [f"| task | {_row(settings['task'])} |", f"| model | {_row(settings['model'])} |"]
    parameters = sum(parameter.numel() for parameter in stored.model.parameters())
    lines += [f"| parameters | {parameters:,} |", f"| source | {stored.kind} {_escaped(stored.name)} |"]
    if run is not None:
        lines += [f"| seed | {run.spec.seed} |", f"| trained | {run.steps_text}, up to length {stored.trained_to} |"]
    if certificate is not None:
        lines.append(f"| certificate | **{certificate.level}** |")
    if doubt is not None:
        lines.append(f"| held-out labels | NOT CONFIRMED: {_escaped(doubt)} |")
    lines += ["", "## Certificate", ""]
    proved = [] if certificate is None else [literal(certificate.claim), "", literal(certificate.reason)]
    lines += proved or ["None: nothing is proved."]
    result = None if run is None else run.result
    lines += ["", "## Accuracy", "", *_accuracy(result), "", "## Use", "", "```console"]
    lines += [f"lengthwise {words}" for words in ("predict FOLDER STRING", "evaluate FOLDER", "certify FOLDER")]
    lines += ["```", "", "```python", "from lengthwise import load_hub", "", 'model, task, *_ = load_hub("FOLDER")']
    return "\n".join([*lines, "```", ""])


def _accuracy(result: RunResult | None) -> list[str]:
    if result is not None and result.perplexity is not None:
        rows = [f"| {point.length:,} | {point.perplexity:.2f} |" for point in result.perplexity.points]
        return ["| tokens in a chunk | perplexity of the last token |", "|---|---|", *rows]
    curves = [] if result is None else [curve for curve in result.curves if curve.points]
    if not curves:
        return ["Not measured."]
    return ["| lengths | protocol | strings at each length | accuracy |", "|---|---|---|---|", *map(_curve_row, curves)]


def _curve_row(curve: LengthCurve) -> str:
    lengths = [point.length for point in curve.points]
    strings, right = (sum(getattr(point, count) for point in curve.points) for count in ("num_strings", "num_correct"))
    counts = {f"{point.num_strings:,}" for point in curve.points}
    span = f"{min(lengths):,} to {max(lengths):,}" if len(set(lengths)) > 1 else f"{lengths[0]:,}"
    return f"| {span} | {curve.protocol} | {' or '.join(sorted(counts))} | {percent(right / strings)} |"


def _row(settings: dict[str, object]) -> str:
    others = ", ".join(f"{key}={value}" for key, value in settings.items() if key != "name")
    text = str(settings["name"]) + (f" ({others})" if others else "")
    return _escaped(text if len(text) <= 400 else f"{text[:400]}...")


def _escaped(text: str) -> str:
    return literal(text).replace("|", "\\|")
