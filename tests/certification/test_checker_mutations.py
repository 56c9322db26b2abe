"""The separate checker accepts no changed certificate or proof that claims what is not so."""

import itertools
import json

import numpy as np
import pytest
from mutated_proofs import forgeries, is_true
from proved_nets import NETS, Proof, packed, proof_of

from lengthwise.certification import checker
from lengthwise.certification.checker import Rejected, check

pytestmark = pytest.mark.unchecked


@pytest.fixture(scope="module")
def proofs() -> list[Proof]:
    return [proof_of(name) for name in NETS]


@pytest.mark.parametrize(("seed", "count"), [(0, 250), pytest.param(1, 20_000, marks=pytest.mark.slow)])
def test_no_false_claim_is_accepted(proofs: list[Proof], seed: int, count: int) -> None:
    """What is accepted must be so for the net that torch makes of the same settings and weights."""
    chance = np.random.default_rng(seed)
    num_accepted = 0
    for proof, (certificate, arrays) in itertools.islice(forgeries(proofs, chance), count):
        rest = {name: value for name, value in certificate.items() if name != "net"}
        try:
            proof._replace(certificate=rest).verdict(arrays)
        except Rejected:
            continue
        num_accepted += 1
        assert is_true(certificate, arrays), (proof.method, certificate["model"])
    assert 0 < num_accepted < count / 2, "some changes leave a proof as it was"


@pytest.mark.parametrize("count", [200, pytest.param(10_000, marks=pytest.mark.slow)])
def test_no_changed_byte_is_accepted(proofs: list[Proof], count: int) -> None:
    """Bytes of a proof are changed, left out or repeated, and the certificate stays as it was."""
    chance = np.random.default_rng(2)
    for _ in range(count):
        proof = proofs[chance.integers(len(proofs))]
        content = bytearray(packed(proof.arrays))
        first = int(chance.integers(len(content)))
        last = first + int(chance.integers(1, 5))
        kind = chance.integers(3)
        changed = bytes(chance.integers(256, size=last - first).tolist())
        content[first:last] = [changed, b"", bytes(content[first:last]) * 2][kind]
        if bytes(content) == packed(proof.arrays):
            continue
        try:
            check(proof.certificate, bytes(content))
        except Rejected:
            continue
        weights = checker.read(bytes(content)).weights
        same = all(np.array_equal(weights[name], proof.arrays[f"weights.{name}"]) for name in weights)
        assert same, "bytes of sets that leave a proof right may change, bytes of weights may not"


def test_certificates_are_read_strictly(proofs: list[Proof]) -> None:
    """Repeated keys, numbers as texts and edited texts; each has the digest of what Python makes of it."""
    from lengthwise.files import json_text

    text = json_text(proofs[0].certificate)
    assert checker.read_certificate(text.encode())["net"] == proofs[0].certificate["net"]
    for old, new in (
        ('"level": "proved"', '"level": "tested",\n "level": "proved"'),
        ('"thickness": 1', '"thickness": 2, "thickness": 1'),
        ('"format": 3', '"format": NaN'),
        ('"format": 3', '"format": 1e999'),
    ):
        assert old in text
        with pytest.raises(Rejected, match=r"expected each key of the certificate once|expected finite numbers"):
            checker.read_certificate(text.replace(old, new).encode())
    edited = json.loads(text) | {"level": "bounded"}
    with pytest.raises(Rejected, match="expected a certificate as it was written, got an edited one"):
        checker.read_certificate(json.dumps(edited).encode())
