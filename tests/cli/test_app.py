"""What holds for every command: help, exit statuses, errors in one line."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.main import get_command

from setwise.cli.app import app, run
from setwise.cli.options import PANELS

KINDS_OF_DAMAGE = {
    "no zip": lambda b: b"PK\x03\x04" + b[40:],
    "empty": lambda _: b"",
    "half": lambda b: b[: len(b) // 2],
    "flipped": lambda b: b[:200] + bytes([b[200] ^ 255]) + b[201:],
    "a pickle": lambda _: b"\x80\x04cos\nsystem\n(S'echo'\ntR.",
}


@pytest.mark.parametrize("damage", list(KINDS_OF_DAMAGE))
def test_damaged_files_are_named_and_never_called_a_fault_of_ours(damage, saved_models, tmp_path, capsys):
    whole = (saved_models / "max.cal").read_bytes()
    (tmp_path / "x.cal").write_bytes(KINDS_OF_DAMAGE[damage](whole))
    pq.write_table(pa.table({"p:cat": [1.0]}), tmp_path / "p.parquet")
    (tmp_path / "x.parquet").write_bytes(KINDS_OF_DAMAGE[damage]((tmp_path / "p.parquet").read_bytes()))
    for arguments in (
        ["predict", tmp_path / "x.cal", "--probabilities", tmp_path / "p.parquet", "--out", tmp_path / "o.csv"],
        ["inspect", tmp_path / "x.parquet", "--candidates", "s"],
    ):
        assert run([*map(str, arguments)]) == 2
        said = capsys.readouterr().err
        assert "fault in setwise" not in said
        assert "/x." in said


@pytest.mark.parametrize(
    "error",
    [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes")],
)
def test_too_little_memory_is_no_fault_of_ours_and_says_what_helps(error, monkeypatch, capsys):
    def fail(*_):
        raise error

    for command, remedy in {"inspect": "give fewer rows", "conformalize": "use --memory-limit 256MB"}.items():
        monkeypatch.setattr("setwise.cli.app._run", fail)
        assert run([command, "t.csv"]) == 2
        said = capsys.readouterr().err
        assert said.startswith("error: there is too little memory; ")
        assert remedy in said
        assert "fault" not in said


def every_command():
    for name, command in get_command(app).commands.items():
        yield from getattr(command, "commands", {name: command}).items()


def test_help_lists_few_options_under_its_first_heading_and_the_others_under_known_ones():
    for name, command in every_command():
        panels = [
            getattr(one, "rich_help_panel", None) for one in command.params if one.param_type_name == "option"
        ]
        assert len([panel for panel in panels if panel is None]) <= 14, name  # and --help
        assert set(panels) <= {None, *PANELS}
        places = [0 if panel is None else PANELS.index(panel) + 1 for panel in panels]
        assert places == sorted(places), name


def test_every_option_says_in_a_sentence_what_it_means_and_what_to_type():
    for name, command in every_command():
        for one in command.params:
            if one.param_type_name == "option" and one.name != "help":
                assert one.help[:1].isalnum(), (name, one.opts)
                assert one.help.endswith("."), (name, one.opts)
                assert one.is_flag or one.metavar, (name, one.opts)


def test_the_first_screen_begins_with_the_demo_and_ends_with_more(capsys):
    assert run(["--help"]) == 0
    said = capsys.readouterr().out
    names = [name for name in get_command(app).commands if f" {name} " in said]
    assert names[:5] == ["demo", "annotators", "estimate", "triage", "suspects"]
    assert said.index("More commands") < said.index(" inspect ") < said.index(" datasets ")


def test_help_works_with_the_installed_click(capsys):
    assert run(["predict", "--help"]) == 0
    assert "--out" in capsys.readouterr().out
