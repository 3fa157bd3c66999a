import pytest

from karpy.codec.validation.celrules import compile_test


def answer(expression: str) -> object:
    test = compile_test(expression)
    assert test is not None
    return test({})


@pytest.mark.parametrize(
    "expression",
    [
        "'abc 123'.find('[0-9]+') == '123'",
        "'abc'.find('[0-9]+') == ''",
        "'1 22 333'.findAll('[0-9]+') == ['1', '22', '333']",
        "'1 22 333'.findAll('[0-9]+', 2) == ['1', '22']",
        "[1, 2, 2].isSorted() && !['b', 'a'].isSorted()",
        "[1, 2, 3].sum() == 6 && [1, 3, 2].max() == 3 && [2, 1].min() == 1",
        "sets.contains([1, 2, 3], [3, 1]) && !sets.contains([1], [2])",
        "sets.intersects([1, 2], [2, 3]) && !sets.intersects([1], [2])",
        "sets.equivalent([1, 2], [2, 1, 1]) && !sets.equivalent([1], [1, 2])",
        "isQuantity('1.5Gi') && isQuantity('-3m') && !isQuantity('three') && !isQuantity('1GB')",
        "quantity('1Gi') == quantity('1024Mi') && quantity('1k') == quantity('1e3')",
        "quantity('1').isGreaterThan(quantity('999m')) && quantity('1').isLessThan(quantity('1k'))",
        "quantity('2').compareTo(quantity('2000m')) == 0 && quantity('-2').sign() == -1",
        "quantity('1').add(quantity('500m')) == quantity('1.5')",
        "quantity('1').sub(2).sign() == -1",
        "quantity('5k').asInteger() == 5000 && !quantity('5m').isInteger()",
        "quantity('1500m').asApproximateFloat() == 1.5",
        "isIP('10.0.0.1') && isIP('::1') && !isIP('10.0.0') && !isIP('::ffff:1.2.3.4')",
        "ip('::1').isLoopback() && ip('::1').family() == 6 && ip('0.0.0.0').isUnspecified()",
        "ip('224.0.0.5').isLinkLocalMulticast() && ip('ff02::1').isLinkLocalMulticast()",
        "ip('169.254.1.1').isLinkLocalUnicast() && ip('10.0.0.1').isGlobalUnicast()",
        "!ip('255.255.255.255').isGlobalUnicast()",
        "ip.isCanonical('::1') && !ip.isCanonical('0:0::1')",
        "isCIDR('10.0.0.1/8') && !isCIDR('10.0.0.1') && !isCIDR('10.0.0.1/08')",
        "cidr('10.0.0.0/8').containsIP('10.1.1.1') && cidr('::/0').containsIP(ip('::5'))",
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')",
        "!cidr('10.0.0.0/8').containsCIDR(cidr('::/16'))",
        "cidr('10.1.0.0/8').ip() == ip('10.1.0.0') && cidr('10.1.0.0/8').prefixLength() == 8",
        "cidr('10.1.0.0/8').masked() == cidr('10.0.0.0/8')",
        "isURL('https://a/b') && isURL('/a') && !isURL('a/b')",
        "url('https://u@a.b:80/c').getScheme() == 'https'",
        "url('https://a:80/').getPort() == '80'",
        "url('https://u@a.b:80/c').getHost() == 'a.b:80'",
        "url('https://[::1]:80/c').getHostname() == '::1' && url('https://a/').getPort() == ''",
        "url('https://a.b:80/c').getHostname() == 'a.b'",
        "url('https://a/b c').getEscapedPath() == '/b%20c'",
        "url('https://a/?x=1&x=2').getQuery()['x'] == ['1', '2']",
    ],
)
def test_rules_know_what_kubernetes_adds_to_cel(expression: str) -> None:
    assert answer(expression) is True


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("quantity('x').sign() == 0", "quantity 'x' cannot be read"),
        ("quantity('0.5').asInteger() == 0", "cannot convert value to integer"),
        ("url('a b').getHost() == ''", "'a b' is no URL"),
        ("cidr('10.0.0.0').prefixLength() == 0", "has no length of its prefix"),
        ("ip('::ffff:1.2.3.4').family() == 4", "IPv4 address in disguise"),
    ],
)
def test_an_invalid_call_is_an_error(expression: str, error: str) -> None:
    assert error in str(answer(expression))


def test_an_invalid_expression_is_not_compiled() -> None:
    assert compile_test("self.(") is None
