from karpy.core.check.breaches import Breach, Rule, shortened


def test_a_breach_reads_from_the_rule_to_the_numbers() -> None:
    breach = Breach(Rule.TAINT, "l1", "shop/web", "gpu:NoSchedule")

    assert str(breach) == "TAINT l1 shop/web gpu:NoSchedule"
    assert str(Breach(Rule.FORGOTTEN, pod="shop/web")) == "FORGOTTEN shop/web"


def test_a_long_list_is_cut_to_its_first() -> None:
    assert shortened(["m5.large"]) == "m5.large"
    assert shortened(["m5.large", "m6.large", "m7.large"]) == "m5.large and 2 others"
