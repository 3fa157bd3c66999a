"""
Hashes that Karpenter itself computes.

Written by a program around `NodePool.Hash` of sigs.k8s.io/karpenter v1.15.0, one template each.
"""

from typing import Any, Final

AWS: Final = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
KWOK: Final = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}

GOLDEN: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "nothing": ("17307646073972311821", {}),
    "an empty class reference": ("13463795802959939202", {"spec": {"nodeClassRef": {}}}),
    "Never alone": ("17307646073972311821", {"spec": {"expireAfter": "Never"}}),
    "a class": ("17369979337536258260", {"spec": {"nodeClassRef": AWS}}),
    "a month": ("6821555240594823858", {"spec": {"nodeClassRef": AWS, "expireAfter": "720h"}}),
    "Never": ("17369979337536258260", {"spec": {"nodeClassRef": AWS, "expireAfter": "Never"}}),
    "labels and annotations": (
        "13354744356299855635",
        {
            "metadata": {"labels": {"team": "a", "tier": "web"}, "annotations": {"note": "x"}},
            "spec": {"nodeClassRef": AWS, "expireAfter": "720h"},
        },
    ),
    "two taints": (
        "14950457949831679041",
        {
            "spec": {
                "nodeClassRef": AWS,
                "expireAfter": "720h",
                "taints": [
                    {"key": "k1", "value": "v1", "effect": "NoSchedule"},
                    {"key": "k2", "effect": "NoExecute"},
                ],
            }
        },
    ),
    "two taints, swapped": (
        "14950457949831679041",
        {
            "spec": {
                "nodeClassRef": AWS,
                "expireAfter": "720h",
                "taints": [
                    {"key": "k2", "effect": "NoExecute"},
                    {"key": "k1", "value": "v1", "effect": "NoSchedule"},
                ],
            }
        },
    ),
    "a startup taint": (
        "10308705777113905800",
        {
            "spec": {
                "nodeClassRef": AWS,
                "expireAfter": "720h",
                "startupTaints": [{"key": "k1", "value": "v1", "effect": "NoSchedule"}],
            }
        },
    ),
    "two days of grace": (
        "15015733878877233177",
        {"spec": {"nodeClassRef": AWS, "expireAfter": "720h", "terminationGracePeriod": "48h"}},
    ),
    "labels": (
        "128772500395208597",
        {"metadata": {"labels": {"tier": "web", "team": "a"}}, "spec": {"nodeClassRef": AWS}},
    ),
    "the same as annotations": (
        "14632371724595815622",
        {"metadata": {"annotations": {"team": "a", "tier": "web"}}, "spec": {"nodeClassRef": AWS}},
    ),
    "a label without value": (
        "7741422022430382210",
        {"metadata": {"labels": {"empty": ""}}, "spec": {"nodeClassRef": AWS}},
    ),
    "labels that are empty": (
        "12535157163608646278",
        {"metadata": {"labels": {}}, "spec": {"nodeClassRef": AWS}},
    ),
    "metadata that is empty": (
        "17369979337536258260",
        {"metadata": {}, "spec": {"nodeClassRef": AWS}},
    ),
    "labels and annotations that are empty": (
        "8087874978614261894",
        {"metadata": {"labels": {}, "annotations": {}}, "spec": {"nodeClassRef": AWS}},
    ),
    "no taints, but said so": (
        "12366373110665249880",
        {"spec": {"nodeClassRef": AWS, "taints": []}},
    ),
    "no taints at all, but said so": (
        "13101299401090773865",
        {"spec": {"nodeClassRef": AWS, "taints": [], "startupTaints": []}},
    ),
    "expires at once": (
        "15640125381500602090",
        {"spec": {"nodeClassRef": AWS, "expireAfter": "0s"}},
    ),
    "no grace": (
        "17858683486241353230",
        {"spec": {"nodeClassRef": AWS, "terminationGracePeriod": "0s"}},
    ),
    "neither grace nor life": (
        "8055811492031395154",
        {"spec": {"nodeClassRef": AWS, "expireAfter": "0s", "terminationGracePeriod": "0s"}},
    ),
    "a day": ("12799250226366401987", {"spec": {"nodeClassRef": AWS, "expireAfter": "24h"}}),
    "a day in minutes": (
        "12799250226366401987",
        {"spec": {"nodeClassRef": AWS, "expireAfter": "1440m"}},
    ),
    "a day in parts": (
        "12799250226366401987",
        {"spec": {"nodeClassRef": AWS, "expireAfter": "23h59m60s"}},
    ),
    "a day of grace": (
        "3891987618023257296",
        {"spec": {"nodeClassRef": AWS, "terminationGracePeriod": "24h"}},
    ),
    "seconds": (
        "10771140578195274001",
        {"spec": {"nodeClassRef": AWS, "terminationGracePeriod": "30s", "expireAfter": "90s"}},
    ),
    "a taint twice": (
        "12366373110665249880",
        {
            "spec": {
                "nodeClassRef": AWS,
                "taints": [
                    {"key": "twice", "effect": "NoSchedule"},
                    {"key": "twice", "effect": "NoSchedule"},
                ],
            }
        },
    ),
    "one taint in both lists": (
        "11409145383349908969",
        {
            "spec": {
                "nodeClassRef": AWS,
                "taints": [{"key": "a", "effect": "NoSchedule"}],
                "startupTaints": [{"key": "a", "effect": "NoSchedule"}],
            }
        },
    ),
    "a wish of a taint": (
        "7565424767020516896",
        {
            "spec": {
                "nodeClassRef": AWS,
                "taints": [{"key": "a", "value": "b", "effect": "PreferNoSchedule"}],
            }
        },
    ),
    "letters beyond ASCII": (
        "3875876045662207103",
        {"metadata": {"labels": {"größe": "groß"}}, "spec": {"nodeClassRef": KWOK}},
    ),
    "KWOK": ("12745407319442031341", {"spec": {"nodeClassRef": KWOK, "expireAfter": "720h"}}),
    "no group": (
        "15764507085243491416",
        {"spec": {"nodeClassRef": {"name": "default", "kind": "KWOKNodeClass"}}},
    ),
    "everything": (
        "6429291792038764012",
        {
            "metadata": {
                "labels": {"a": "1", "b": "2", "c": "3"},
                "annotations": {"a": "1", "b": "2"},
            },
            "spec": {
                "nodeClassRef": AWS,
                "taints": [
                    {"key": "t1", "effect": "NoSchedule"},
                    {"key": "t2", "value": "v", "effect": "NoExecute"},
                    {"key": "t3", "effect": "PreferNoSchedule"},
                ],
                "startupTaints": [
                    {"key": "s1", "effect": "NoSchedule"},
                    {"key": "s2", "effect": "NoExecute"},
                ],
                "terminationGracePeriod": "1h30m",
                "expireAfter": "168h",
            },
        },
    ),
    "a taint without value": (
        "17285580507237450665",
        {"spec": {"nodeClassRef": AWS, "taints": [{"key": "a", "effect": "NoSchedule"}]}},
    ),
    "requirements": (
        "6821555240594823858",
        {
            "spec": {
                "nodeClassRef": AWS,
                "requirements": [
                    {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}
                ],
                "expireAfter": "720h",
            }
        },
    ),
}
