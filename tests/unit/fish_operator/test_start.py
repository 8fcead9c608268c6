"""Starting: what is missing is said in one line, with an exit code that says that starting again will not help."""

import json
import logging

import kopf
import pytest
import structlog
import yaml

from fish_contracts.exit_codes import ExitCode
from fish_operator.__main__ import main
from fish_operator.access import connection
from fish_operator.errors import CredentialsError

KUBECONFIG = {
    "current-context": "here",
    "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
    "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443"}}],
    "users": [{"name": "u", "user": {"token": "first"}}],
}


@pytest.fixture(autouse=True)
def _logging_as_before():
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()


@pytest.fixture
def kubeconfig(tmp_path, monkeypatch):
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(KUBECONFIG))
    monkeypatch.setenv("KUBECONFIG", str(path))
    return path


def test_credentials_come_from_the_kubeconfig_as_it_is_now(kubeconfig):
    settings = kopf.OperatorSettings()
    assert connection(settings).as_http_headers() == {"Authorization": "Bearer first"}
    kubeconfig.write_text(kubeconfig.read_text().replace("first", "exchanged"))
    assert connection(settings).as_http_headers() == {"Authorization": "Bearer exchanged"}


def test_a_kubeconfig_without_a_server_is_refused(kubeconfig):
    kubeconfig.write_text(yaml.safe_dump(KUBECONFIG | {"clusters": [{"name": "c", "cluster": {}}]}))
    with pytest.raises(CredentialsError, match="set KUBECONFIG"):
        connection(kopf.OperatorSettings())


def test_without_access_it_ends_with_a_line_that_names_the_file(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    assert main([]) == ExitCode.CONFIG
    line = json.loads(capsys.readouterr().out)
    assert line["event"] == "no access to the cluster"
    assert "absent" in line["error"]


def test_a_wrong_setting_is_named_with_its_value(monkeypatch, capsys):
    monkeypatch.setenv("FISH_TICK_S", "soon")
    assert main([]) == ExitCode.CONFIG
    assert "FISH_TICK_S" in (told := capsys.readouterr().err)
    assert "'soon'" in told


def test_who_asks_for_help_learns_what_the_environment_may_set(capsys):
    assert main(["--help"]) == ExitCode.DONE
    assert {"POD_IP=127.0.0.1", "FISH_TICK_S=1.0"} <= set(capsys.readouterr().out.split())


def test_arguments_are_refused_before_anything_starts(capsys):
    assert main(["--tick", "1"]) == ExitCode.USAGE
    assert "takes no arguments" in capsys.readouterr().err
