"""Builds the wheel and the source distribution, and tests what was built in a clean environment.

Run by ``make dist``. The wheel is built from the source distribution, installed without extras, then with the command
line; tests of the unpacked source distribution run against the installed wheel. Nothing of the checkout is imported.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Folders and files that the tests read.
NEEDED = [
    "benchmarks",
    "docs",
    "examples",
    "papers",
    "src",
    "tests",
    "tools",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "README.md",
]
#: Tests of each kind that are over in seconds: closed forms, files, pages, packaging.
QUICK = [
    "tests/linalg/test_linalg.py",
    "tests/test_layout.py",
    "tests/test_readme.py",
    "tests/test_packaging.py",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=Path, default=ROOT / "dist", help="folder of the wheel and the source distribution"
    )
    out = parser.parse_args().out.resolve()
    sdist, wheel = build(out)
    check_names(sdist, wheel)
    with tempfile.TemporaryDirectory(prefix="leastwise-dist-") as folder:
        source = unpack(sdist, Path(folder))
        python = clean_environment(Path(folder) / "venv", source)
        install(python, str(wheel))
        run(python, str(source / "tools" / "smoke.py"), cwd=folder)
        install(python, f"{wheel}[cli]")
        run(python, str(source / "tools" / "smoke.py"), "--cli", cwd=folder)
        install(python, "pytest", "hypothesis", "mpmath")
        run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *QUICK, cwd=source)
    print(f"Built and tested: {sdist.name}, {wheel.name}")


def build(out: Path) -> tuple[Path, Path]:
    """The source distribution, and the wheel that is built from it."""
    shutil.rmtree(out, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", str(out), str(ROOT))
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    return sdist, wheel


def check_names(sdist: Path, wheel: Path) -> None:
    """The wheel is the package and nothing else; the source distribution has every file under version control."""
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    sources = ROOT / "src"
    expected = {path for path in tracked() if path.startswith("src/")} or {
        path.relative_to(ROOT).as_posix()
        for path in sources.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    compare("wheel", {f"src/{name}" for name in packed}, expected)
    with tarfile.open(sdist) as archive:
        names = {member.name.split("/", 1)[1] for member in archive if member.isfile()}
    missing = [name for name in NEEDED if not any(path == name or path.startswith(name + "/") for path in names)]
    if missing or (missing := sorted(tracked() - names)):
        raise SystemExit(f"The source distribution lacks {', '.join(missing[:10])}.")


def compare(what: str, found: set[str], expected: set[str]) -> None:
    if found != expected:
        raise SystemExit(
            f"The {what} lacks {sorted(expected - found)[:10]} and has {sorted(found - expected)[:10]} in addition."
        )


def tracked() -> set[str]:
    """Files under version control; empty outside of a checkout."""
    asked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    return {path for path in asked.stdout.splitlines() if (ROOT / path).is_file()}


def unpack(sdist: Path, folder: Path) -> Path:
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (source,) = folder.glob("leastwise-*")
    return source


def clean_environment(folder: Path, source: Path) -> str:
    """An interpreter that sees no package but pip; the version in the archive is that of this checkout."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    if not source.name.endswith(version):
        raise SystemExit(f"{source.name} was built from version {version}.")
    venv.create(folder, with_pip=True)
    return str(folder / ("Scripts" if sys.platform == "win32" else "bin") / "python")


def install(python: str, *what: str) -> None:
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what)


def run(*command: str, cwd: Path | str | None = None) -> None:
    """A command in an environment without PYTHONPATH, so that only installed packages are seen."""
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    subprocess.run(command, cwd=cwd, env=env, check=True)


if __name__ == "__main__":
    main()
