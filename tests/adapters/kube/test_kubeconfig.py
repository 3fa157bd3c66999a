import os
from base64 import b64encode
from pathlib import Path
from typing import Final

import pytest

from karpy.adapters.kube.access import (
    EXEC_V1,
    EXEC_V1BETA1,
    IF_AVAILABLE,
    NEVER,
    Access,
    Endpoint,
    ExecPlugin,
    User,
)
from karpy.adapters.kube.kubeconfig import kubeconfig_files, read_kubeconfig
from karpy.errors import KubeconfigInvalid

PEM: Final = "-----BEGIN CERTIFICATE-----"
DATA: Final = b64encode(PEM.encode()).decode()
WORD: Final = "wordle"
SMALL: Final = f"""
current-context: dev
contexts:
- {{name: dev, context: {{cluster: near, user: jane, namespace: shop}}}}
- {{name: prod, context: {{cluster: far, user: jane}}}}
- {{name: lost, context: {{cluster: nowhere, user: jane}}}}
- {{name: nobody, context: {{cluster: near}}}}
clusters:
- {{name: near, cluster: {{server: "https://near:6443/"}}}}
- {{name: far, cluster: {{server: "https://far"}}}}
users:
- {{name: jane, user: {{token: {WORD}}}}}
"""


def written(folder: Path, text: str, name: str = "config") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def read_user(folder: Path, user: str) -> User:
    before, _, _ = SMALL.partition("users:")
    return read_kubeconfig(
        [written(folder, f"{before}users:\n- {{name: jane, user: {user}}}")]
    ).user


def read_endpoint(folder: Path, cluster: str) -> Endpoint:
    text = SMALL.replace('{server: "https://near:6443/"}', cluster)
    return read_kubeconfig([written(folder, text)]).endpoint


def test_the_current_context_is_used_by_default(tmp_path: Path) -> None:
    file = written(tmp_path, SMALL)

    access = read_kubeconfig([file])

    assert access == Access(Endpoint("https://near:6443"), User(WORD), "shop", str(file))


def test_another_context_can_be_named(tmp_path: Path) -> None:
    access = read_kubeconfig([written(tmp_path, SMALL)], "prod")

    assert (access.endpoint.server, access.namespace) == ("https://far", "default")


def test_a_context_without_a_user_has_an_empty_user(tmp_path: Path) -> None:
    assert read_kubeconfig([written(tmp_path, SMALL)], "nobody").user == User()


def test_of_several_files_the_first_with_an_entry_counts(tmp_path: Path) -> None:
    first = written(
        tmp_path,
        "{users: [{name: jane, user: {token: first}}], current-context: prod}",
        "first",
    )
    second = written(tmp_path, SMALL, "second")

    access = read_kubeconfig([first, second])

    assert access.endpoint.server == "https://far"
    assert access.user == User("first")


def test_paths_are_relative_to_the_file_they_are_written_in(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    written(tmp_path / "there", PEM, "ca.crt")
    here = written(tmp_path / "here", SMALL)
    there = written(
        tmp_path / "there",
        """
        contexts: [{name: far, context: {cluster: third, user: file}}]
        clusters: [{name: third, cluster: {server: a, certificate-authority: ca.crt}}]
        users:
        - name: file
          user: {tokenFile: token, client-certificate: my.crt, client-key: /abs/my.key}
        """,
    )

    access = read_kubeconfig([here, there], "far")

    folder = tmp_path / "there"
    assert access.endpoint == Endpoint("https://a", ca_pem=PEM)
    assert access.user == User(
        token_file=str(folder / "token"), cert_file=str(folder / "my.crt"), key_file="/abs/my.key"
    )


def test_everything_about_a_cluster_is_read(tmp_path: Path) -> None:
    endpoint = read_endpoint(
        tmp_path,
        f"""{{server: http://plain, certificate-authority-data: {DATA}, tls-server-name: name,
             proxy-url: "http://proxy:3128", extensions: [{{
               name: client.authentication.k8s.io/exec, extension: {{audience: us}}}}]}}""",
    )

    assert endpoint == Endpoint(
        "http://plain",
        ca_pem=PEM,
        tls_name="name",
        proxy="http://proxy:3128",
        exec_config={"audience": "us"},
    )


def test_checks_can_be_switched_off(tmp_path: Path) -> None:
    endpoint = read_endpoint(tmp_path, "{server: a, insecure-skip-tls-verify: true}")

    assert not endpoint.is_verified


@pytest.mark.parametrize(
    ("text", "user"),
    [
        ("{}", User()),
        ("{username: jane, password: pw}", User(basic=("jane", "pw"))),
        (
            f"{{client-certificate-data: {DATA}, client-key-data: {DATA}}}",
            User(cert_pem=PEM, key_pem=PEM),
        ),
        (
            "{as: joe, as-groups: [a, b], as-uid: u, as-user-extra: {scopes: [x]}}",
            User(
                headers=(
                    ("Impersonate-User", "joe"),
                    ("Impersonate-Group", "a"),
                    ("Impersonate-Group", "b"),
                    ("Impersonate-Uid", "u"),
                    ("Impersonate-Extra-scopes", "x"),
                )
            ),
        ),
    ],
)
def test_every_kind_of_credentials_is_read(tmp_path: Path, text: str, user: User) -> None:
    assert read_user(tmp_path, text) == user


def test_an_exec_plugin_is_read(tmp_path: Path) -> None:
    user = read_user(
        tmp_path,
        f"""{{exec: {{apiVersion: {EXEC_V1}, command: aws, args: [eks, get-token],
             env: [{{name: AWS_PROFILE, value: dev}}], installHint: install it,
             interactiveMode: Never, provideClusterInfo: true}}}}""",
    )

    assert user.plugin == ExecPlugin(
        command="aws",
        args=("eks", "get-token"),
        env=(("AWS_PROFILE", "dev"),),
        api_version=EXEC_V1,
        install_hint="install it",
        interactive_mode=NEVER,
        has_cluster_info=True,
    )


def test_the_older_plugin_protocol_leaves_the_mode_open(tmp_path: Path) -> None:
    user = read_user(tmp_path, f"{{exec: {{apiVersion: {EXEC_V1BETA1}, command: ./mine}}}}")

    assert user.plugin == ExecPlugin(
        command=str(tmp_path / "mine"), api_version=EXEC_V1BETA1, interactive_mode=IF_AVAILABLE
    )


@pytest.mark.parametrize(
    ("text", "context", "problem"),
    [
        ("", None, "no `current-context` is set"),
        ("[1]", None, "a list, not an object"),
        ("a: [", None, "is not YAML"),
        (SMALL, "prods", "there is no `prods` among its contexts"),
        (SMALL, "lost", "there is no `nowhere` among its clusters"),
        (SMALL.replace("user: jane", "user: joe"), None, "there is no `joe` among its users"),
        (SMALL.replace("cluster: near, user", "user"), None, "context.cluster` is missing"),
    ],
)
def test_a_kubeconfig_that_leads_nowhere_is_named(
    tmp_path: Path, text: str, context: str | None, problem: str
) -> None:
    file = written(tmp_path, text)

    with pytest.raises(KubeconfigInvalid) as raised:
        read_kubeconfig([file], context)

    assert str(file) in raised.value.message
    assert problem in raised.value.message


def test_a_wrong_name_comes_with_the_right_ones(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigInvalid) as raised:
        read_kubeconfig([written(tmp_path, SMALL)], "prods")

    assert raised.value.hint == "name one of: dev, lost, nobody, prod"


@pytest.mark.parametrize(
    ("cluster", "problem"),
    [
        ("{}", "`clusters[0].cluster.server` is missing"),
        ("{server: ftp://a}", "`clusters[0].cluster.server` is no address of http:// or"),
        ("{server: a, certificate-authority-data: '%%'}", "is not the base64"),
        ("{server: a, certificate-authority: nofile}", "names a file that cannot be read"),
        (
            f"{{server: a, insecure-skip-tls-verify: true, certificate-authority-data: {DATA}}}",
            "is true though a certificate authority is given",
        ),
        ("{server: a, proxy-url: 'socks5://p'}", "`clusters[0].cluster.proxy-url` is no"),
        ("{server: a, insecure-skip-tls-verify: 'yes'}", "not true or false"),
    ],
)
def test_a_cluster_that_cannot_be_read_is_named(tmp_path: Path, cluster: str, problem: str) -> None:
    with pytest.raises(KubeconfigInvalid) as raised:
        read_endpoint(tmp_path, cluster)

    assert problem in raised.value.message


@pytest.mark.parametrize(
    ("user", "problem"),
    [
        ("{token: 3}", "`users[0].user.token` is not text"),
        ("{auth-provider: {name: gcp}}", "is a way of old"),
        ("{exec: {command: a}}", "`users[0].user.exec.apiVersion` is missing"),
        ("{exec: {command: a, apiVersion: client.authentication.k8s.io/v1alpha1}}", "v1alpha1"),
        (f"{{exec: {{command: a, apiVersion: {EXEC_V1}}}}}", "interactiveMode` is missing"),
        (f"{{exec: {{apiVersion: {EXEC_V1BETA1}}}}}", "command` is missing"),
        ("{client-key-data: abc}", "is not the base64"),
    ],
)
def test_a_user_that_cannot_be_read_is_named(tmp_path: Path, user: str, problem: str) -> None:
    with pytest.raises(KubeconfigInvalid) as raised:
        read_user(tmp_path, user)

    assert problem in raised.value.message


def test_a_file_that_is_a_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigInvalid, match="cannot be read"):
        read_kubeconfig([tmp_path])


def test_the_given_file_takes_precedence_over_the_environment(tmp_path: Path) -> None:
    file = written(tmp_path, SMALL)

    assert kubeconfig_files(str(file), {"KUBECONFIG": "/nowhere"}) == [file]


def test_of_the_files_in_the_environment_those_that_exist_are_read(tmp_path: Path) -> None:
    file = written(tmp_path, SMALL)
    env = {"KUBECONFIG": os.pathsep.join(["/nowhere", "", str(file)])}

    assert kubeconfig_files(None, env) == [file]


@pytest.mark.parametrize(("given", "env"), [("/nowhere", {}), (None, {"KUBECONFIG": "/nowhere"})])
def test_files_that_do_not_exist_are_named(given: str | None, env: dict[str, str]) -> None:
    with pytest.raises(KubeconfigInvalid, match="`/nowhere`: there is no such file"):
        kubeconfig_files(given, env)


def test_by_default_the_file_of_the_home_folder_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".kube").mkdir()
    before = kubeconfig_files(None, {})
    file = written(tmp_path / ".kube", SMALL)

    assert before == []
    assert kubeconfig_files(None, {}) == [file]
