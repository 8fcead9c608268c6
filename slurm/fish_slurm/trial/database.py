"""MariaDB and slurmdbd of a trial cluster in QOS mode."""

import shutil
import subprocess
import time
from collections.abc import Callable

from fish_slurm.errors import SlurmFailed
from fish_slurm.trial.configuration import TrialPlan, slurmdbd_conf

Command = Callable[..., str]


def start(plan: TrialPlan, command: Command) -> None:
    """Start both, then make the QOS of the policy and an account that holds root."""
    _start_mariadb(plan)
    conf = plan.etc / "slurmdbd.conf"
    conf.write_text(slurmdbd_conf(plan))
    conf.chmod(0o600)
    shutil.chown(conf, "slurm")
    command("slurmdbd")
    _retry(lambda: command("sacctmgr", "-n", "show", "cluster", timeout_s=5), timeout_s=30)
    command("sh", str(plan.conf / "fish-qos.sh"))
    command("sacctmgr", "-i", "add", "cluster", "fish-trial")
    command("sacctmgr", "-i", "add", "account", "fish", "Description=fish", "Organization=fish")
    command("sacctmgr", "-i", "add", "user", "root", "account=fish")
    # Root belongs to an account of its own from the start, which knows none of these QOS.
    command("sacctmgr", "-i", "modify", "user", "root", "set", "defaultaccount=fish")
    command("sacctmgr", "-i", "modify", "user", "root", "set", "qos=train,serve,clean", "defaultqos=train")


def stop(plan: TrialPlan) -> None:
    """End MariaDB, if it runs."""
    socket = plan.root / "database/mariadb.socket"
    if socket.exists():
        subprocess.run(
            ["mariadb-admin", f"--socket={socket}", "shutdown"], check=False, timeout=30, capture_output=True
        )


def _start_mariadb(plan: TrialPlan) -> None:
    root = plan.root / "database"
    root.mkdir()
    shutil.chown(root, "mysql", "mysql")
    data, socket = root / "data", root / "mariadb.socket"
    install = ["mariadb-install-db", "--user=mysql", f"--datadir={data}", "--auth-root-authentication-method=socket"]
    subprocess.run([*install, "--skip-test-db"], check=True, capture_output=True, timeout=60)
    subprocess.Popen(
        [
            "mariadbd",
            "--no-defaults",
            "--user=mysql",
            f"--datadir={data}",
            f"--socket={socket}",
            f"--port={plan.ports[-1]}",
            "--bind-address=127.0.0.1",
            f"--pid-file={root}/mariadb.pid",
            f"--log-error={root}/mariadb.log",
            "--innodb-buffer-pool-size=32M",
        ],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,  # its log has it too
    )
    accounts = "CREATE USER slurm@'127.0.0.1' IDENTIFIED BY 'trial'; GRANT ALL ON slurm_acct_db.* TO slurm@'127.0.0.1';"
    _retry(lambda: _sql(str(socket), accounts), timeout_s=30)


def _sql(socket: str, statements: str) -> str:
    done = subprocess.run(
        ["mariadb", f"--socket={socket}", "-e", statements], check=False, capture_output=True, text=True, timeout=10
    )
    if done.returncode:
        raise SlurmFailed(f"mariadb ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def _retry(step: Callable[[], str], *, timeout_s: float) -> None:
    deadline_s = time.monotonic() + timeout_s
    while True:
        try:
            step()
        except (SlurmFailed, subprocess.TimeoutExpired):
            if time.monotonic() > deadline_s:
                raise
            time.sleep(0.2)
        else:
            return
