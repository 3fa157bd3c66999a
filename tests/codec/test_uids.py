import re

from karpy.codec.uids import derived_uid


def test_a_uid_looks_like_one_and_stays_the_same() -> None:
    uid = derived_uid("Deployment", "shop", "web", "0")

    assert uid == "2608abf3-8dee-4622-0149-65710f9edcb7"
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", uid)


def test_other_names_are_other_uids() -> None:
    assert derived_uid("Pod", "a", "b") != derived_uid("Pod", "a", "c")
