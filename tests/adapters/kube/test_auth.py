from pathlib import Path

import pytest

from karpy.adapters.kube.access import User
from karpy.adapters.kube.auth import FileCredentials, FixedCredentials, RequestCredentials
from karpy.errors import CredentialsRefused


async def test_fixed_credentials_stay_what_they_are() -> None:
    credentials = FixedCredentials(User("abc", cert_pem="C", key_pem="K"))

    identity = await credentials.identity()

    assert identity == RequestCredentials("Bearer abc", "C", "K")
    assert await credentials.renewed(identity) == identity


async def test_a_user_without_credentials_has_no_identity() -> None:
    assert await FixedCredentials(User()).identity() == RequestCredentials()


async def test_a_token_file_is_cached_for_a_while(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    credentials = FileCredentials(User(token_file=str(file)))
    await credentials.identity()
    file.write_text("second\n")

    assert await credentials.identity() == RequestCredentials("Bearer first")


async def test_a_token_file_is_read_again_after_a_while(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    credentials = FileCredentials(User(token_file=str(file)), seconds=0)
    await credentials.identity()
    file.write_text("second\n")

    assert await credentials.identity() == RequestCredentials("Bearer second")


async def test_a_refused_token_is_read_again_at_once(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    credentials = FileCredentials(User(token_file=str(file)))
    refused = await credentials.identity()
    file.write_text("second\n")

    assert await credentials.renewed(refused) == RequestCredentials("Bearer second")


async def test_a_token_file_that_is_being_replaced_leaves_the_old_token(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    credentials = FileCredentials(User(token_file=str(file)), seconds=0)
    await credentials.identity()
    file.write_text("")

    assert await credentials.identity() == RequestCredentials("Bearer first")


async def test_certificates_in_files_are_read_again(tmp_path: Path) -> None:
    cert, key = tmp_path / "my.crt", tmp_path / "my.key"
    cert.write_text("C1")
    key.write_text("K1")
    user = User(cert_file=str(cert), key_file=str(key))
    credentials = FileCredentials(user, seconds=0)
    before = await credentials.identity()
    cert.write_text("C2")

    assert before == RequestCredentials("", "C1", "K1")
    assert await credentials.identity() == RequestCredentials("", "C2", "K1")


async def test_an_empty_token_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(" \n")

    with pytest.raises(CredentialsRefused, match="it is empty"):
        await FileCredentials(User(token_file=str(file))).identity()


async def test_a_missing_token_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "token"

    with pytest.raises(CredentialsRefused, match="it cannot be read"):
        await FileCredentials(User(token_file=str(file))).identity()
