"""The page of the command line says what the commands say."""

import importlib.util
import re
from pathlib import Path

import pytest

pytest.importorskip("typer")

import typer

from leastwise.cli.app import app
from leastwise.cli.output import MEANING

DOCS = Path(__file__).resolve().parents[2] / "docs"
if not (DOCS / "cli.md").is_file():
    pytest.skip("the documentation is not beside the tests", allow_module_level=True)
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:,\d{3})*(?:\.\d+)?(?:e-?\d+)?")
#: What differs from run to run: seconds and sizes.
RUN = re.compile(
    r"\(\d+\.\d+ MB\) after \d+\.\d s|about [\d.]+ s and [\d.]+ [KMG]B of memory"
    r"|\([\d.]+ [KMG]B with the table and the libraries\)"
)


def script():
    spec = importlib.util.spec_from_file_location("make_transcript", DOCS / "make_transcript.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def parts(text):
    """The words, without spaces that only align, and the numbers."""
    text = RUN.sub("", text)
    numbers = [float(n.replace(",", "")) for n in NUMBER.findall(text)]
    return [" ".join(NUMBER.sub("#", line).split()) for line in text.splitlines()], numbers


def test_the_transcript_is_what_the_commands_say():
    made = script()
    (words, numbers), (new_words, new_numbers) = parts(made.written()), parts(made.transcript())
    assert words == new_words, "run docs/make_transcript.py"
    assert numbers == pytest.approx(new_numbers, rel=0.02, abs=0.002), "run docs/make_transcript.py"
    assert sum("$ leastwise" in line for line in words) >= 3
    assert len(numbers) > 100


def test_the_page_has_all_commands_and_exit_codes():
    page = (DOCS / "cli.md").read_text()
    for command in app.registered_commands:
        assert re.search(rf"^\| `{command.callback.__name__}\b", page, re.M), command.callback.__name__
    codes = {int(code): text for code, text in re.findall(r"^\| (\d+) \| (.*?) \|$", page, re.M)}
    assert codes.keys() == MEANING.keys()
    assert all(codes[code].startswith(MEANING[code]) for code in codes)
    commands = typer.main.get_command(app).commands.values()
    known = {"--help", *(name for command in commands for option in command.params for name in option.opts)}
    assert set(re.findall(r"`(--[a-z-]+)", page)) <= known
