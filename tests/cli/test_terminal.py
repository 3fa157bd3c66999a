import io

from karpy.cli.terminal import Channel, Span, Style, Terminal, line


def written(*spans: str | Span, has_colour: bool = False, encoding: str = "utf-8") -> str:
    buffer = io.BytesIO()
    stream = io.TextIOWrapper(buffer, encoding=encoding, newline="\n")
    Channel(stream, has_colour=has_colour).write([line(*spans)])
    return buffer.getvalue().decode(encoding)


def test_a_style_is_a_colour_on_a_colour_terminal() -> None:
    assert written("a ", Span("bad", Style.BAD), has_colour=True) == "a \x1b[31mbad\x1b[0m\n"


def test_a_style_is_nothing_without_colour() -> None:
    assert written("a ", Span("bad", Style.BAD), Span("  ")) == "a bad\n"


def test_bars_and_ellipses_have_a_shape_in_ascii() -> None:
    assert written("██░ cut… café", encoding="ascii") == "##. cut~ caf?\n"


def test_a_name_cannot_control_the_terminal() -> None:
    """Manifests may come from anyone; an escape sequence in a name must stay text."""
    assert written("evil\x1b[2J\x07\u202ename\udcff\n") == "evil?[2J??name??\n"


def test_no_color_and_the_flag_turn_colour_off() -> None:
    assert not Terminal.of_process({"NO_COLOR": "1"}, no_colour=False).out.has_colour
    assert not Terminal.of_process({}, no_colour=True).out.has_colour


def test_json_is_plain_ascii() -> None:
    out = io.StringIO()
    channel = Channel(out, has_colour=True)

    Terminal(io.StringIO(), channel, channel).answer_json({"name": "café"})

    assert out.getvalue() == '{\n  "name": "caf\\u00e9"\n}\n'


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_replaces_the_last_text_and_is_removed() -> None:
    screen = Screen()
    channel = Channel(screen, has_colour=False)

    channel.show_progress("file 1 of 9")
    channel.show_progress("done\x1b")
    channel.show_progress("")

    assert screen.getvalue() == "\rfile 1 of 9\rdone?      \r     \r"
