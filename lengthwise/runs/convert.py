"""Converts what earlier versions wrote: records of experiments, run folders and certificates.

    python -m lengthwise.runs.convert docs/results/records/*.jsonl.gz runs

What is of this version already stays as it is.
"""

import gzip
import json
import re
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lengthwise.certification.certificate import FORMAT
from lengthwise.files import read_json, write_by_rename, write_json
from lengthwise.models.base import MODELS
from lengthwise.models.capabilities import HasHiddenMatrices
from lengthwise.registry import UnknownName
from lengthwise.runs.records import is_of_diverged
from lengthwise.runs.spec import spec_from_json
from lengthwise.training.checkpoint import change_fingerprint

Content = dict[str, Any]

LEVELS = {"finite": "extracted", "robust": "proved"}
CONFIG_FIELDS = {"snap_after": "quantize_after", "initialisation": "initialization"}
TESTED_FIELDS = {"num_asked": "num_graded"}
TRACE_FIELDS = {"farthest": "max_distance"}
CLOSURE_FIELDS = {
    "num_representatives": "num_prototypes",
    "representatives": "prototypes_digest",
    "asked_radius": "requested_radius",
}
ENCLOSURE_FIELDS = {"num_representatives": "num_prototypes", "half_width": "radius", "margin": "logit_margin"}
CODE_FIELDS = {"room": "slack", "margin": "logit_margin"}
STATE_FIELDS = CODE_FIELDS | {"num_codes": "num_states", "num_merges": "num_steps"}
COUNTEREXAMPLE_FIELDS = {"wanted": "expected"}

REASONS = (
    (r"no boxes were found (.*), with a margin between answers", r"no enclosures were found \1, with a logit margin"),
    (r"wanted at most ([\d,]+) merges to bound", r"expected no more than \1 merges in 4 rounds"),
    (r"(?:: |, and )with radius (\S+) ", r"; with radius \1: "),
    (r"representatives", "prototypes"),
)
"""Patterns in the reasons of certificates, and their replacements."""

WAY_OUT = "only whole files can be converted"


def renamed(content: Mapping[str, Any], names: Mapping[str, str]) -> Content:
    """The same with other names of fields."""
    return {names.get(name, name): value for name, value in content.items()}


def convert_certificate(old: Content) -> Content:
    """A certificate's content in the present format."""
    if old["format"] == FORMAT:
        return old
    new = {name: value for name, value in old.items() if name not in ("boxes", "codes", "followed")}
    new |= {"format": FORMAT, "level": LEVELS.get(old["level"], old["level"]), "reason": convert_reason(old["reason"])}
    new["model"] = renamed(old["model"], CONFIG_FIELDS)
    new["tested"] = [renamed(part, TESTED_FIELDS) for part in old["tested"]]
    new["trace_agreement"] = [renamed(part, TRACE_FIELDS) for part in old["followed"]]
    new["evidence"] = convert_evidence(old)
    for name, fields in (("closure", CLOSURE_FIELDS), ("counterexample", COUNTEREXAMPLE_FIELDS)):
        new[name] = old[name] and renamed(old[name], fields)
    return new


def convert_evidence(old: Content) -> Content | None:
    """Boxes of trees, and codes of trees or of recurrences, as a variant of the evidence."""
    if old["boxes"]:
        return {"method": "enclosures", **renamed(old["boxes"], ENCLOSURE_FIELDS)}
    if not old["codes"]:
        return None
    if "leaves" in old["machine"]:
        return {"method": "codes", **renamed(old["codes"], CODE_FIELDS)}
    return {"method": "states", **renamed(old["codes"], STATE_FIELDS)}


def convert_reason(reason: str) -> str:
    """A reason in the present words."""
    for pattern, replacement in REASONS:
        reason = re.sub(pattern, replacement, reason)
    return reason


def convert_spec(old: Content) -> Content:
    """A specification with the present names of settings, and with the optimizer that ran.

    Where a model names no hidden matrices, AdamW used to train it instead of Muon, and the specification said Muon.
    """
    new = old | {"model": renamed(old["model"], CONFIG_FIELDS)}
    optimizer = old["train"]["optimizer"]
    if optimizer["name"] == "muon" and not issubclass(MODELS[old["model"]["name"]], HasHiddenMatrices):
        new["train"] = old["train"] | {"optimizer": optimizer | {"name": "adamw"}}
    return new


def convert_result(old: Content) -> Content:
    """A run's result, under the id that its specification has now."""
    spec = convert_spec(old["spec"])
    certificate = old["certificate"] and convert_certificate(old["certificate"])
    return old | {"run_id": _id(old["run_id"], old["spec"], spec), "spec": spec, "certificate": certificate}


def convert_description(old: Content) -> Content:
    """What ``run.json`` holds: a specification and its id."""
    spec = convert_spec(old["spec"])
    return old | {"id": _id(old["id"], old["spec"], spec), "spec": spec}


def _id(old: str, before: Content, now: Content) -> str:
    """That of a specification; one that stays is not read, as it may be about a text that is not here."""
    return old if now == before else spec_from_json(now).id


FILES: Mapping[str, Callable[[Content], Content]] = {
    "run.json": convert_description,
    "result.json": convert_result,
    "certificate.json": convert_certificate,
}


def convert_records(path: Path) -> bool:
    """Convert a file of records, and overwrite it; whether anything changed."""
    old = gzip.decompress(path.read_bytes()).decode()
    lines = (
        line if is_of_diverged(line) else json.dumps(convert_result(json.loads(line)), separators=(",", ":"))
        for line in old.splitlines()
    )
    new = "".join(f"{line}\n" for line in lines)
    if new != old:
        write_by_rename(path, gzip.compress(new.encode(), mtime=0))
    return new != old


def convert_file(path: Path, conversion: Callable[[Content], Content]) -> bool:
    """Convert a file of JSON with a digest, and overwrite it; whether anything changed."""
    old = read_json(path, WAY_OUT)
    new = conversion(old)
    if new != old:
        write_json(path, new)
    return new != old


def convert_folder(folder: Path) -> list[Path]:
    """Convert a run's files, and give checkpoint and folder its present id; what changed."""
    before = read_json(folder / "run.json", WAY_OUT)["id"] if (folder / "run.json").exists() else None
    names = [name for name in reversed([*FILES]) if (folder / name).exists()]  # run.json, which has the old id, last
    now = None if before is None else convert_description(read_json(folder / "run.json", WAY_OUT))["id"]
    if before is not None and now is not None and before != now and (folder / "checkpoint.safetensors").exists():
        change_fingerprint(folder / "checkpoint.safetensors", now)
    changed = [folder / name for name in names if convert_file(folder / name, FILES[name])]
    if now is not None and folder.name != now and re.fullmatch(r".*-seed\d+-[0-9a-f]{10}", folder.name):
        if folder.with_name(now).exists():
            raise ValueError(f"{folder}: expected no other run of its present id, got {now} next to it; remove one")
        changed.append(folder.rename(folder.with_name(now)))
    return changed


def convert(path: Path) -> list[Path]:
    """Convert a file of records, a certificate, a run folder, or all that lie below a folder; what changed.

    Raises:
        ValueError: there is no such path, a file is damaged or about a model or task that is not known here, or a
            folder has the id that another is to get.
    """
    try:
        if path.is_dir():
            below = [changed for inner in sorted(path.iterdir()) if inner.is_dir() for changed in convert(inner)]
            records = [file for file in sorted(path.glob("*.jsonl.gz")) if convert(file)]
            return below + records + convert_folder(path)
        changed = convert_records(path) if path.name.endswith(".gz") else convert_file(path, convert_certificate)
    except UnknownName:
        raise
    except FileNotFoundError:
        raise ValueError(f"{path}: there is no such file or folder; name records, runs or certificates") from None
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: damaged file ({type(error).__name__}); {WAY_OUT}") from None
    return [path] if changed else []


def main(paths: Sequence[str]) -> int:
    """Convert these paths and say what changed."""
    for name in paths:
        try:
            changed = convert(Path(name))
        except ValueError as error:
            sys.stderr.write(f"{error}\n")
            return 2
        sys.stdout.writelines(f"converted {path}\n" for path in changed)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
