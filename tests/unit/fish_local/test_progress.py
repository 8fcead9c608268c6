import io

from rich.console import Console

from fish_local.progress import LineNarrator, narrator


def test_without_a_terminal_each_tenth_is_a_line() -> None:
    out = io.StringIO()
    with narrator(Console(file=out)) as tell:
        for done in range(1, 101):
            tell.advance("building", done, 100)
    assert out.getvalue().splitlines() == [
        "building: 1 of 100",
        *(f"building: {done} of 100" for done in range(10, 101, 10)),
    ]


def test_a_line_is_printed_as_it_is() -> None:
    out = io.StringIO()
    LineNarrator(Console(file=out, width=20)).say("[red] is a word here, and this line is long")
    assert out.getvalue() == "[red] is a word here, and this line is long\n"


def test_a_terminal_gets_a_bar() -> None:
    out = io.StringIO()
    with narrator(Console(file=out, force_terminal=True)) as tell:
        tell.advance("building", 1, 2)
        tell.advance("building", 2, 2)
    assert "2/2" in out.getvalue()
