"""Text from the wire, in the two forms in which it is shown."""

from hypothesis import given
from hypothesis import strategies as st

from klamm.decoders.text import printable, valid_text

ANY = st.binary().map(lambda data: data.decode("utf-8", "surrogateescape"))


def test_a_byte_that_is_not_utf_8_is_written_as_python_shows_it() -> None:
    assert valid_text("café\udcff\x1b") == "café\\udcff\x1b"
    assert printable("café\udcff") == "café\\udcff"


def test_text_from_the_wire_cannot_move_the_cursor() -> None:
    assert printable("orders\ufe0f\u3164") == "orders\\ufe0f\\u3164"
    assert printable("a\x1b[2Jb\nc\u202ed ä中") == "a\\x1b[2Jb\\nc\\u202ed ä中"


@given(ANY)
def test_any_bytes_become_text_that_can_be_written(text: str) -> None:
    for safe in (valid_text(text), printable(text)):
        assert safe.encode().decode() == safe
    assert printable(text).isprintable()
