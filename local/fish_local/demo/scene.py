"""What the demo works with: the checkout's chart, examples and test data, and a folder for what it makes."""

import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from fish_local.errors import CommandFailed

CHECKOUT: Final = Path(__file__).parents[3]
CHART: Final = CHECKOUT / "helm" / "fish-tts"
NAMESPACE: Final = "fish-system"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Folders of one demo. `root` is emptied of earlier results, the corpus is kept if it has the right size."""

    root: Path
    items: int

    @property
    def corpus(self) -> Path:
        """Recordings to clean."""
        return self.root / f"corpus-{self.items}"

    @property
    def checkpoint(self) -> Path:
        """What the engines serve: the small random model and codec of the tests, in one folder as a published one is."""
        return self.root / "checkpoint"

    @property
    def cleaned(self) -> Path:
        """Shards, journals and commits of the cleaning job."""
        return self.root / "cleaned"

    def prepare(self) -> None:
        """Make the corpus and forget an earlier run."""
        self.root.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self.cleaned, ignore_errors=True)
        for name in ("report.json", "speech.wav", "gpus.svg"):
            (self.root / name).unlink(missing_ok=True)
        self._assemble_checkpoint()
        if not self.corpus.exists():
            making = self.corpus.with_suffix(".making")
            shutil.rmtree(making, ignore_errors=True)
            source = CHECKOUT / "tests" / "data" / "librivox"
            run_room("fish_cleaning", "make-corpus", "--source", source, "--out", making, "--items", self.items)
            making.rename(self.corpus)

    def _assemble_checkpoint(self) -> None:
        golden = CHECKOUT / "tests" / "golden"
        parts = {name: f"s2_tiny/{name}" for name in ("config.json", "model.safetensors", "tokenizer.json")}
        parts |= {"codec.pth": "codec_tiny/codec.pth", "codec_config.json": "codec_tiny/config.json"}
        self.checkpoint.mkdir(exist_ok=True)
        for name, source in parts.items():
            shutil.copyfile(golden / source, self.checkpoint / name)


def run_room(package: str, *arguments: object) -> str:
    """Run a room's command line in a process of its own and return what it prints.

    Raises:
        CommandFailed: it ended with an error; the message has what it wrote to standard error.
    """
    command = [sys.executable, "-m", package, *map(str, arguments)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise CommandFailed(
            f"`{package} {arguments[0]}` ended with {answer.returncode}: {answer.stderr.strip()} {answer.stdout.strip()}"
        )
    return answer.stdout


def example(name: str, changes: Mapping[str, str | list[str]]) -> str:
    """Return the YAML of an example with fields set; a key is a path such as `spec.input.uri`."""
    manifest = yaml.safe_load((CHECKOUT / "examples" / name).read_text())
    for path, value in changes.items():
        *parents, last = path.split(".")
        place = manifest
        for parent in parents:
            if parent not in place:
                raise KeyError(f"examples/{name} has no {parent} on the way to {path}")
            place = place[parent]
        place[last] = value
    return yaml.safe_dump(manifest, sort_keys=False)
