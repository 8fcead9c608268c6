"""Starts and stops a trial cluster."""

import contextlib
import os
import shutil
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from fish_slurm.errors import MissingPart, SlurmFailed
from fish_slurm.trial import database
from fish_slurm.trial.configuration import Mode, TrialPlan, gres_conf, slurm_conf

SLURM_FOLDER: Final = Path(__file__).parents[2]
"""Holds conf/ and job_submit.lua."""

_PACKAGES: Final = {"slurmctld": "slurmctld", "slurmd": "slurmd", "sinfo": "slurm-client", "munged": "munge"}
_QOS_PACKAGES: Final = {"slurmdbd": "slurmdbd", "mariadbd": "mariadb-server"}
_NULL_DEVICE: Final = os.makedev(1, 3)


def missing_parts(mode: Mode = "partition") -> str | None:
    """Return why a trial cluster cannot run here, or None."""
    needed = _PACKAGES | (_QOS_PACKAGES if mode == "qos" else {})
    packages = sorted(package for program, package in needed.items() if not shutil.which(program, path=_search_path()))
    if packages:
        return f"needs the Debian packages {' '.join(packages)}"
    if os.geteuid() != 0:
        return "needs root, to make fake GPU devices and to start slurmd"
    return None


class TrialCluster:
    """A running cluster. `environment` is all that a Slurm command needs to talk to it."""

    def __init__(self, plan: TrialPlan) -> None:
        self.plan = plan
        self.environment: Mapping[str, str] = {
            **os.environ,
            "PATH": _search_path(),
            "SLURM_CONF": str(plan.etc / "slurm.conf"),
        }

    def command(self, *arguments: str, user: str | None = None, timeout_s: float = 20) -> str:
        """Return the standard output of a command run against this cluster; raise SlurmFailed with its words if it fails."""
        done = self.attempt(*arguments, user=user, timeout_s=timeout_s)
        if done.returncode:
            raise SlurmFailed(f"{' '.join(arguments)} ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def attempt(
        self, *arguments: str, user: str | None = None, timeout_s: float = 20
    ) -> subprocess.CompletedProcess[str]:
        """Run a command against this cluster, as root or as another user, and return how it went."""
        prefix = ["runuser", "-u", user, "--"] if user else []
        return subprocess.run(
            [*prefix, *arguments],
            env=self.environment,
            cwd=self.plan.root,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def start(self) -> None:
        """Start everything and return once every node is idle."""
        _lay_out(self.plan)
        _start_munged(self.plan, self.environment)
        if self.plan.mode == "qos":
            database.start(self.plan, self.command)
        self.start_controller(forget=True)
        for name in self.plan.node_names():
            self.start_node(name)
        self.wait_until(self._all_idle, "every node idle", timeout_s=30)

    def start_controller(self, *, forget: bool = False) -> None:
        """Start slurmctld; `forget` drops the state of an earlier one."""
        self.command("slurmctld", *(["-c"] if forget else []))

    def start_node(self, name: str) -> None:
        """Start the slurmd of one node."""
        self.command("slurmd", "-N", name)

    def stop_daemon(self, name: str, how: signal.Signals = signal.SIGTERM) -> None:
        """End `slurmctld`, `slurmd-n1`, `slurmdbd`, … and wait until it is gone."""
        pid_file = self.plan.root / "run" / f"{name}.pid"
        _end(_pid_in(pid_file), how)
        pid_file.unlink(missing_ok=True)

    def stop(self) -> None:
        """End all jobs and daemons that this cluster started."""
        with contextlib.suppress(SlurmFailed, subprocess.TimeoutExpired):
            self.cancel_all()
        run = self.plan.root / "run"
        for pid_file in [*sorted(run.glob("slurmd-*.pid")), run / "slurmctld.pid", run / "slurmdbd.pid"]:
            self.stop_daemon(pid_file.stem, signal.SIGKILL)  # asked kindly, each takes two seconds to save its state
        database.stop(self.plan)
        _end(_pid_in(self.plan.root / "munge/run/munged.pid"), signal.SIGKILL)

    def cancel_all(self) -> None:
        """Cancel every job and return once none is left."""
        for partition in ("train", "serve", "clean"):
            self.command("scancel", "--full", "--partition", partition)
        self.wait_until(lambda: not self.command("squeue", "-h").strip(), "an empty queue", timeout_s=15)

    def wait_until(self, claim: Callable[[], bool], name: str, *, timeout_s: float) -> None:
        """Return once `claim` holds; raise SlurmFailed, with what slurmctld last complained of, if it does not in time."""
        deadline_s = time.monotonic() + timeout_s
        while not claim():
            if time.monotonic() > deadline_s:
                raise SlurmFailed(f"waited {timeout_s:g} s for {name}; slurmctld says: {self._last_complaint()}")
            time.sleep(0.05)

    def _last_complaint(self) -> str:
        lines = (self.plan.root / "log/slurmctld.log").read_text().splitlines()
        return next((line for line in reversed(lines) if "fatal:" in line or "error:" in line), "nothing")

    def _all_idle(self) -> bool:
        shown = self.attempt("sinfo", "-h", "-N", "-p", "clean", "-o", "%T")
        return shown.stdout.split() == ["idle"] * self.plan.nodes


@contextlib.contextmanager
def running(plan: TrialPlan) -> Iterator[TrialCluster]:
    """Run a trial cluster for the length of a `with` block; raise MissingPart where the machine cannot."""
    if reason := missing_parts(plan.mode):
        raise MissingPart(f"a trial cluster {reason}")
    cluster = TrialCluster(plan)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def plan_here(
    root: Path, *, nodes: int = 2, gpus_per_node: int = 4, mode: Mode = "partition", settings: Sequence[str] = ()
) -> TrialPlan:
    """Return a plan for this host with ports that are free now."""
    return TrialPlan(
        root=root,
        conf=SLURM_FOLDER / "conf",
        host=socket.gethostname(),
        ports=_free_ports(nodes + 3),
        nodes=nodes,
        gpus_per_node=gpus_per_node,
        mode=mode,
        settings=tuple(settings),
    )


def _lay_out(plan: TrialPlan) -> None:
    plan.root.chmod(0o755)
    for folder in ("etc", "state", "spool", "log", "run", "dev", "munge"):
        (plan.root / folder).mkdir()
    for folder in ("state", "log", "run"):
        shutil.chown(plan.root / folder, "slurm")
    (plan.etc / "slurm.conf").write_text(slurm_conf(plan))
    (plan.etc / "gres.conf").write_text(gres_conf(plan))
    guard = (SLURM_FOLDER / "job_submit.lua").read_text()
    if plan.mode == "qos":
        guard = guard.replace("local USE_QOS = false", "local USE_QOS = true")
    (plan.etc / "job_submit.lua").write_text(guard)
    for name in plan.node_names():
        (plan.root / "spool" / name).mkdir()
        (plan.root / "dev" / name).mkdir()
        for index in range(plan.gpus_per_node):
            device = plan.root / "dev" / name / f"nvidia{index}"
            os.mknod(device, stat.S_IFCHR | 0o666, _NULL_DEVICE)
            device.chmod(0o666)


def _start_munged(plan: TrialPlan, environment: Mapping[str, str]) -> None:
    folders = {name: plan.root / "munge" / name for name in ("lib", "log", "run")}
    for name, folder in folders.items():
        folder.mkdir()
        folder.chmod(0o755 if name == "run" else 0o700)
        shutil.chown(folder, "munge", "munge")
    key = folders["lib"] / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    shutil.chown(key, "munge", "munge")
    daemon = [
        "munged",
        f"--key-file={key}",
        f"--socket={plan.munge_socket}",
        f"--pid-file={folders['run']}/munged.pid",
        f"--seed-file={folders['lib']}/munged.seed",
        f"--log-file={folders['log']}/munged.log",
    ]
    subprocess.run(["runuser", "-u", "munge", "--", *daemon], env=environment, check=True, timeout=20)


def _search_path() -> str:
    return f"/usr/sbin:/sbin:{os.environ.get('PATH', '/usr/bin:/bin')}"


def _free_ports(count: int) -> tuple[int, ...]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return tuple(each.getsockname()[1] for each in sockets)


def _pid_in(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (FileNotFoundError, ValueError):
        return None


def _end(pid: int | None, how: signal.Signals) -> None:
    if pid is None or not _is_alive(pid):
        return
    os.kill(pid, how)
    deadline_s = time.monotonic() + 10
    while _is_alive(pid):
        if time.monotonic() > deadline_s:
            raise SlurmFailed(f"process {pid} did not end within 10 s of {how.name}")
        time.sleep(0.02)


def _is_alive(pid: int) -> bool:
    """Tell whether a process runs; one that only waits for its parent to notice, and in containers it may wait long, does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
