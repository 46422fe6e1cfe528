"""Antibodies: files with good errors, wheels that are not what was pinned, and tiny models of the same classes."""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from factordiff.cli.demo_world import watch
from factordiff.errors import CheckpointError, DataError, MissingDependency, Unavailable
from factordiff.worlds.antibody import fetching, models
from factordiff.worlds.antibody.fetching import (
    CONFIGS,
    WHEELS,
    bert_weights,
    checked,
    checkpoint,
    keep,
    roberta_weights,
)
from factordiff.worlds.antibody.models import adapted, built, load_model
from factordiff.worlds.antibody.sequences import CODONS, REGIONS, RESIDUES, read_sequences
from factordiff.worlds.antibody.world import ALAKAZAM, RATES, TRASTUZUMAB, Antibody, hidden_cells, in_split
from factordiff.worlds.catalogue import compare_world

EARNED = "fitted:evidence,fitted:learned[steps=3;head=product],fitted:learned[kind=neighbourhood;steps=3;head=mixture]"
CODON_OF = {residue: codon for codon, residue in CODONS.items()}


def tiny(name: str) -> dict[str, Any]:
    """The configuration of a model with few weights."""
    small = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    return {**CONFIGS[name], "model": {**CONFIGS[name]["model"], **small}}


def fairseq(model: torch.nn.Module) -> dict[str, Any]:
    """A RoBERTa's weights under fairseq's names, as the published checkpoint has them."""
    weights = {}
    for name, weight in model.state_dict().items():
        if (
            name in ("lm_head.bias", "roberta.embeddings.token_type_embeddings.weight")
            or "position_ids" in name
        ):
            continue
        for old, new in reversed(fetching.ROBERTA_NAMES):
            name = name.replace(new, old) if new != "lm_head" or name.startswith("lm_head") else name
        weights[name] = weight
    return weights


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Tiny random models where the fetched ones would be."""
    monkeypatch.setenv(fetching.FOLDER, str(tmp_path))
    for name, wheel in WHEELS.items():
        model = built(tiny(name))
        keep(fetching.model_folder(name), model.state_dict() | {}, tiny(name), wheel)
    return tmp_path


def chain(cdr3: str, cut: int = 0) -> dict[str, str]:
    """An AIRR row: 104 codons with gaps in CDR1, a junction and a framework 4."""
    before = "".join(CODON_OF[RESIDUES[place % 20]] for place in range(103)) + CODON_OF["C"]
    gapped = before[: 3 * 30] + "......" + before[3 * 32 :]
    junction = CODON_OF["C"] + "".join(CODON_OF[letter] for letter in cdr3) + CODON_OF["W"]
    aligned = "." * cut + gapped[cut:-3] + junction + "".join(CODON_OF[letter] for letter in "GQGT") + "C"
    return {"productive": "T", "sequence_alignment": aligned, "junction": junction, "locus": "IGH"}


def airr(path: Path, rows: list[dict[str, str]]) -> Path:
    names = ["sequence_id", *dict.fromkeys(name for row in rows for name in row)]
    lines = ["\t".join(names)]
    lines += [
        "\t".join({"sequence_id": f"s{n}", **row}.get(name, "") for name in names)
        for n, row in enumerate(rows)
    ]
    text = "\n".join(lines) + "\n"
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def test_airr_rows_become_residues_and_regions(tmp_path: Path) -> None:
    rows = [
        chain("ARDY"),
        chain("ARDY"),
        {**chain("AKKK"), "productive": "F"},
        {**chain("GGGG"), "clone_id": "c7"},
    ]
    found = read_sequences(airr(tmp_path / "some.tsv.gz", rows))
    assert len(found) == 2  # the second is the first again, the third is not productive
    one = found[0]
    assert (
        len(one.residues) == len(one.regions) == 103 - 2 + 1 + 4 + 1 + 4
    )  # less the gap, with the junction and the end
    assert [one.regions.count(region) for region in REGIONS] == [26, 10, 17, 10, 39, 4, 5]
    assert "".join(r for r, where in zip(one.residues, one.regions, strict=True) if where == "cdr3") == "ARDY"
    assert one.residues.endswith("WGQGT")
    assert one.clone == rows[0]["junction"]
    assert found[1].clone == "c7"


def test_a_chain_that_is_cut_or_stops(tmp_path: Path) -> None:
    stopped = chain("ARDY")
    stopped["sequence_alignment"] = stopped["sequence_alignment"].replace(
        CODON_OF["W"] + CODON_OF["G"], "TAA" + CODON_OF["G"]
    )
    found = read_sequences(airr(tmp_path / "some.tsv", [chain("ARDY", cut=7), stopped, chain("GGGG")]))
    assert [len(one.residues) for one in found] == [111 - 3, 111]


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("a.fasta", ">one\nQVQL\nVEZG\n", "line 3, column 3: 'Z' is none of the 20 amino acids"),
        ("a.fasta", "QVQL\n", "line 1: expected a line with >"),
        ("a.fasta", ">one\n>two\nQVQ\n", "line 1: one has no residues"),
        ("a.fasta", "", "it is empty"),
        ("a.tsv", "sequence_id\tproductive\n", "the column sequence_alignment is missing"),
        ("a.txt", "QVQL", "expected a name that ends in .fasta"),
    ],
)
def test_bad_files_are_refused(name: str, text: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(DataError, match=sentence):
        read_sequences(path)
    with pytest.raises(DataError, match="cannot be read"):
        read_sequences(tmp_path / "missing.fasta")


def test_fasta_has_residues_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.fa"
    path.write_text(">one first\nQVQL\nve\n>two\nEVQL\n")
    found = read_sequences(path)
    assert [(one.name, one.residues, one.regions, one.clone) for one in found] == [
        ("one", "QVQLVE", (), "one"),
        ("two", "EVQL", (), "two"),
    ]


def test_hidden_residues_belong_to_the_sequence() -> None:
    for rate, count in zip(RATES, (9, 30, 51), strict=True):
        assert int(hidden_cells("ACDEFGHIKL" * 6, rate).sum()) == count
    assert (hidden_cells("ACDE" * 9, 0.5) == hidden_cells("ACDE" * 9, 0.5)).all()
    assert (hidden_cells("ACDE" * 9, 0.5) != hidden_cells("ACDF" * 9, 0.5)).any()
    assert in_split("clone", "validation") != in_split("clone", "test")


def test_a_checkpoint_of_fairseq_becomes_the_same_roberta() -> None:
    model = built(tiny("sapiens")).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.1 * torch.sin(torch.arange(weight.numel())).view_as(weight))
        model.roberta.embeddings.token_type_embeddings.weight.zero_()
        model.lm_head.decoder.bias.copy_(model.lm_head.bias)
    published = fairseq(model)
    published["decoder.lm_head.bias"] = model.lm_head.bias.detach().clone()
    other = built(tiny("sapiens")).eval()
    missing, unexpected = other.load_state_dict(roberta_weights({"model": published}), strict=False)
    assert not unexpected
    assert set(missing) <= set(models.TIED)
    tokens = torch.tensor([[0, 5, 24, 7, 2]])
    torch.testing.assert_close(other(input_ids=tokens).logits, model(input_ids=tokens).logits)
    with pytest.raises(CheckpointError, match="expected a checkpoint of fairseq"):
        roberta_weights({"weights": {}})
    with pytest.raises(CheckpointError, match="expected weights by name"):
        bert_weights([1])


def test_the_first_value_is_alanine(folder: Path) -> None:
    expert = load_model(fetching.model_folder("antiberty"))
    assert expert.vocabulary.size == 20
    assert expert.tokens[0] == 5
    assert RESIDUES[0] == "A"


def test_a_folder_of_another_class_is_refused(folder: Path) -> None:
    place = fetching.model_folder("sapiens")
    config = json.loads((place / "config.json").read_text())
    (place / "config.json").write_text(
        json.dumps({**config, **{k: tiny("antiberty")[k] for k in ("class", "model")}})
    )
    with pytest.raises(CheckpointError, match=r"not of a BertForMaskedLM: .* is missing"):
        load_model(place)
    (place / "config.json").write_text(json.dumps({**config, "class": "GPT2LMHeadModel"}))
    with pytest.raises(CheckpointError, match="expected one of RobertaForMaskedLM, BertForMaskedLM"):
        load_model(place)
    with pytest.raises(Unavailable, match="run `factordiff data fetch antibody` first"):
        load_model(folder / "nowhere")


def test_transformers_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingDependency, match=r"install factordiff\[hf\]"):
        built(tiny("sapiens"))


def wheel_of(path: Path, member: str, content: Any) -> Path:
    data = io.BytesIO()
    torch.save(content, data)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, data.getvalue())
    return path


class Harmful:
    """What a pickle could hold."""


def test_a_wheel_is_checked_and_read_without_running_it(tmp_path: Path) -> None:
    pinned = WHEELS["sapiens"]
    good = wheel_of(
        tmp_path / "a.whl", pinned.member, {"args": argparse.Namespace(x=1), "model": {"w": torch.ones(2)}}
    )
    own = replace(pinned, sha256=hashlib.sha256(good.read_bytes()).hexdigest())
    checked(good, own)
    assert checkpoint(good, own)["model"]["w"].tolist() == [1, 1]
    with pytest.raises(DataError, match="expected sha256 af1a8d"):
        checked(good, pinned)
    bad = wheel_of(tmp_path / "b.whl", pinned.member, {"model": Harmful()})
    with pytest.raises(CheckpointError, match="cannot be read as weights alone"):
        checkpoint(bad, pinned)
    with pytest.raises(DataError, match="there is no"):
        checkpoint(wheel_of(tmp_path / "c.whl", "other", {}), pinned)


def test_pip_that_fails_is_said(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"no-such-package-of-ours==1\.0\.5: pip could not download it"):
        fetching.downloaded(replace(WHEELS["sapiens"], package="no-such-package-of-ours"), tmp_path)


def test_the_world_runs_on_tiny_models(folder: Path) -> None:
    letters = "ADEFGHIKLMNPQRSTVY"
    rows = [
        chain("".join(letters[(n * 5 + place * (1 + n % 3)) % 18] for place in range(4 + n % 3)))
        for n in range(12)
    ]
    antibody = Antibody(airr(folder / "some.tsv", rows))
    table = compare_world(
        antibody,
        f"alone,mixture,fitted:product,{EARNED},routing-by-region,oracle,union",
        validation=15,
        budget=4,
    )
    assert {row.label for row in table.rows} >= {
        "sapiens",
        "antiberty",
        "fitted:product",
        "routing-by-region",
        *EARNED.split(","),
    }
    assert table["fitted:evidence"].passes == 10  # four folds of what is given
    nats = {row.label: row.value(table.main) for row in table.rows}
    assert nats["oracle"] <= nats["union"] <= min(nats["sapiens"], nats["antiberty"])
    of_cdr3 = next(measure for measure in table.measures if measure.name == "nats cdr3")
    assert table["sapiens"].value(of_cdr3) > 0
    # Regions are factors: within a region one model speaks, so a row is never better than the oracle.
    assert nats["routing-by-region"] >= nats["oracle"]
    of_rates = [one for one in table.measures if one.aside and one.name.startswith("right cdr3")]
    assert len(of_rates) == len(RATES)
    hidden_in_cdr3 = sum(table["sapiens"].sizes[one.name].sum() for one in of_rates)
    assert hidden_in_cdr3 == table["sapiens"].sizes["right cdr3"].sum() > 0
    assert not any(one.name in heading for one in of_rates for heading in table.table().headings)
    assert table.figures()["sapiens"][of_rates[0].name] == table["sapiens"].value(of_rates[0])
    assert list(table.differences("sapiens")["union"]) == [one.name for one in table.columns]
    with pytest.raises(Unavailable, match="install Debian's r-cran-alakazam, or give a FASTA"):
        Antibody(folder / "missing.tsv").sequences()


def test_a_fasta_file_has_no_regions_to_measure(folder: Path) -> None:
    (folder / "own.fasta").write_text("".join(f">s{n}\n{TRASTUZUMAB[n:]}\n" for n in range(6)))
    table = compare_world(Antibody(folder / "own.fasta"), "alone,product", limit=3)
    place = table.table().headings.index("nats cdr3, nats [95 %]")
    assert {row[place] for row in table.table().rows if row is not None} == {"—"}
    differences = table.against("product")
    place = differences.headings.index("nats cdr3, nats [95 %]")
    assert {row[place] for row in differences.rows if row is not None} == {"—"}
    assert table.differences("product")["sapiens"]["nats cdr3"] == [None, None, None]


def test_the_demo_needs_the_models_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    without = Antibody(folder / "missing.tsv")
    watch(Console(width=200), without)
    lines = capsys.readouterr().out.splitlines()
    assert "antibody: two published models" in lines[1]
    shown = next(place for place, line in enumerate(lines) if len(line) == 64)  # the first line of residues
    hidden = hidden_cells(TRASTUZUMAB, 0.15)[:64].tolist()
    assert [letter in "ab" for letter in f"{lines[shown + 1]:<64}"] == hidden
    assert f"of {round(0.15 * len(TRASTUZUMAB))} hidden cells are right" in lines[-1]
    (folder / "own.fasta").write_text("".join(f">s{n}\n{TRASTUZUMAB[n:]}\n" for n in range(4)))
    example = Antibody(folder / "own.fasta").example()  # whoever has sequences sees the first of them
    assert example.x_0.shape[1] in range(len(TRASTUZUMAB) - 3, len(TRASTUZUMAB) + 1)
    assert example.clusters[0] in ("s0", "s1", "s2", "s3")


def test_the_adapter_is_asked_with_the_models_own_tokens() -> None:
    seen: list[torch.Tensor] = []

    class Model(torch.nn.Module):
        def forward(self, input_ids: torch.Tensor) -> Any:
            seen.append(input_ids)
            return argparse.Namespace(logits=torch.zeros(*input_ids.shape, 25))

    expert = adapted(Model(), CONFIGS["sapiens"]["tokens"])
    expert.log_probs(torch.tensor([[0, 20, 19]]), None)
    assert seen[0].tolist() == [[0, 4, 24, 23, 2]]


@pytest.mark.slow
def test_the_published_models_predict_antibodies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(fetching.FOLDER, str(tmp_path))
    fetching.fetch()
    values = torch.tensor([[RESIDUES.index(letter) for letter in TRASTUZUMAB]])
    hidden = hidden_cells(TRASTUZUMAB, 0.15)[None]
    for name in WHEELS:
        expert = load_model(fetching.model_folder(name))
        said = expert.log_probs(torch.where(hidden, 20, values), None)
        right = (said.argmax(-1) == values)[hidden].double().mean()
        assert right > 0.7  # chance is 0.05; a wrong map of names or tokens is near it
    if ALAKAZAM.exists():
        table = compare_world(Antibody(), "alone,product,oracle", limit=30)
        assert table["oracle"].value(table.main) < table["antiberty"].value(table.main) < 0.8
