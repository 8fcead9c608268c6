"""The backlog file: which cleaning there is to do. Read once at the start; the edge where text becomes records."""

from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fish_slurm.batch_file import WorkerJob
from fish_slurm.errors import BadSetting


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _CleaningJob(_Strict):
    name: str
    input: str
    output: str
    recipe: str
    max_workers: int = Field(ge=1, le=100_000)
    gpus: int = 1
    cpus: int = 2
    memory_mib: int | None = None


class _File(_Strict):
    run_folder: str
    worker: tuple[str, ...] = ("python3", "-m", "fish_cleaning")
    partition: str = "clean"
    qos: str | None = None
    account: str | None = None
    checkpoint_budget_s: int = 10
    cleaning_jobs: tuple[_CleaningJob, ...] = Field(min_length=1)


class Backlog:
    """Cleaning jobs in order of preference."""

    def __init__(self, jobs: dict[str, tuple[WorkerJob, int]], run_folder: Path, partition: str) -> None:
        self._jobs = jobs
        self.run_folder = run_folder
        self.partition = partition

    @property
    def work(self) -> dict[str, int]:
        """How many workers each cleaning job may have."""
        return {name: workers for name, (_, workers) in self._jobs.items()}

    def worker(self, name: str) -> WorkerJob:
        """Return what a worker of this cleaning job is, for slot 0."""
        return self._jobs[name][0]


def read_backlog(path: Path) -> Backlog:
    """Read a backlog file; raise BadSetting that names the field and what would be right."""
    try:
        file = _File.model_validate(yaml.safe_load(path.read_text()))
    except OSError as error:
        raise BadSetting(f"backlog {path}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise BadSetting(f"backlog {path} is not YAML: {error}") from error
    except ValidationError as error:
        raise BadSetting(f"backlog {path}: {_first_problem(error)}") from error
    jobs = {job.name: (_worker_job(file, job), job.max_workers) for job in file.cleaning_jobs}
    if len(jobs) < len(file.cleaning_jobs):
        raise BadSetting(f"backlog {path}: two cleaning jobs have the same name; names must differ")
    return Backlog(jobs, Path(file.run_folder), file.partition)


def _worker_job(file: _File, job: _CleaningJob) -> WorkerJob:
    return WorkerJob(
        name=job.name,
        input=job.input,
        output=job.output,
        recipe=job.recipe,
        gpus=job.gpus,
        cpus=job.cpus,
        memory_mib=job.memory_mib,
        run_folder=file.run_folder,
        worker=file.worker,
        partition=file.partition,
        qos=file.qos,
        account=file.account,
        checkpoint_budget_s=file.checkpoint_budget_s,
    )


def _first_problem(error: ValidationError) -> str:
    problem = error.errors()[0]
    place = ".".join(map(str, problem["loc"])) or "the file"
    return f"{place}: {problem['msg']}, found {problem['input']!r}"
