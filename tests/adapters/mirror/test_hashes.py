import pytest

from karpy.adapters.mirror.cluster import Hashes
from karpy.codec.fields import Fields, JsonObject
from karpy.codec.records import read_pool_record
from karpy.errors import AnswerMalformed
from karpy.model.labels import NODE_POOL_HASH, NODE_POOL_HASH_VERSION
from karpy.model.records import PoolRecord
from karpy.ports.records import Kept


def pool(generation: int = 1, expire_after: str = "720h") -> Kept[PoolRecord]:
    ref = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    template = {"spec": {"nodeClassRef": ref, "expireAfter": expire_after}}
    meta = {"name": "web", "uid": "1", "generation": generation, "annotations": {"note": "x"}}
    obj = {"metadata": meta, "spec": {"template": template}}
    return Kept(read_pool_record(Fields(obj)), obj)


def stamped(digest: str) -> JsonObject:
    return {"note": "x", NODE_POOL_HASH: digest, NODE_POOL_HASH_VERSION: "v3"}


def test_a_pool_carries_the_hash_of_what_it_is_now() -> None:
    hashes = Hashes()

    before = hashes.stamped(pool())
    after = hashes.stamped(pool(2, "Never"))

    assert before["metadata"]["annotations"] == stamped("6821555240594823858")
    assert after["metadata"]["annotations"] == stamped("17369979337536258260")


def test_a_template_is_hashed_once() -> None:
    hashes = Hashes()
    hashes.stamped(pool())

    again = hashes.stamped(pool(expire_after="nonsense"))

    assert again["metadata"]["annotations"] == stamped("6821555240594823858")


def test_a_pool_that_cannot_be_read_is_named() -> None:
    with pytest.raises(AnswerMalformed, match="NodePool `web` cannot be read"):
        Hashes().stamped(pool(expire_after="nonsense"))
