"""The library of C functions: each is found, follows its dependencies, and is defined once."""

import re
from pathlib import Path

import pytest
from candelabra_clike import library
from candelabra_clike.library import definitions, needed


def test_every_definition_of_every_file_is_found() -> None:
    """The search finds every function, table and macro of the folder."""
    folder = Path(library.__file__).parent
    written = []
    for file in folder.glob("*.c"):
        text = file.read_text(encoding="utf-8")
        written += re.findall(r"^FUNCTION\b[^\n(]*?\b(\w+)\s*\(", text, re.MULTILINE)
        written += re.findall(r"^CONSTANT\s+\w+\s+(\w+)", text, re.MULTILINE)
        written += re.findall(r"^#define\s+(\w+)", text, re.MULTILINE)
    names = [re.sub("_(?:[TZ]|x8)$", "", name) + end for name in written for end in _endings(name)]
    assert sorted(set(names)) == sorted(definitions())


def _endings(name: str) -> tuple[str, ...]:
    """Return the suffixes that a name for several types can have."""
    for suffix, endings in {"_T": ("_f32", "_f64"), "_Z": ("_c64", "_c128"), "_x8": ("_x8", "_x16")}.items():
        if name.endswith(suffix):
            return endings
    return ("",)


def test_what_a_text_names_is_put_before_it() -> None:
    """A function follows its dependencies; a text without library names includes nothing."""
    assert needed("out[0] = a[0] + b[0];") == ""
    assert needed("out[0] = store_f16(x);") == definitions()["store_f16"] + "\n"
    assert needed("store_f16(load_f16(x))").count("FUNCTION") == 2


def test_functions_of_eight_lanes_are_templates_of_sixteen() -> None:
    """Types, words and functions have the other width; other eights stay."""
    text = definitions()["exp_x16"]
    assert text.startswith("FUNCTION f32x16 exp_x16(f32x16 given)")
    assert "BITS_F32X16(first << 23)" in text
    assert "x8" not in text
    assert definitions()["store_bf16_x16"].count("0x7FFFu") == 1


def test_needs_of_needs_come_first_and_once() -> None:
    """Definitions precede their uses, whatever the order in the text."""
    for name, text in definitions().items():
        found = needed(name)
        assert found.endswith(text + "\n"), name
        assert found.count(text + "\n") == 1, name


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a library for the test."""
    monkeypatch.setattr(library, "files", lambda _: tmp_path)
    monkeypatch.setattr(library, "definitions", library.definitions.__wrapped__)
    return tmp_path


def test_a_name_that_is_defined_twice_is_an_error(folder: Path) -> None:
    """Two files may not define the same name."""
    (folder / "a.c").write_text("FUNCTION f32 twice(f32 x) {\n    return x + x;\n}\n")
    (folder / "b.c").write_text("#define twice(x) (2 * (x))\n")
    (folder / "notes.txt").write_text("#define twice(x) no\n")
    with pytest.raises(TypeError, match=r"library: 'twice' is defined twice, the second time in b\.c"):
        library.definitions()


def test_tables_and_macros_of_several_lines(folder: Path) -> None:
    """A table ends with its semicolon, a macro with the first line that is not continued."""
    (folder / "a.c").write_text(
        "/* A comment. */\nCONSTANT f32 places[2] = {\n    1.0f,\n    2.0f};\n\n"
        "#define first(x) \\\n    places[x]\nrest\n"
    )
    assert library.definitions() == {
        "places": "CONSTANT f32 places[2] = {\n    1.0f,\n    2.0f};",
        "first": "#define first(x) \\\n    places[x]",
    }


def test_a_text_for_both_widths_is_defined_twice(folder: Path) -> None:
    """A name that ends in `_T` is defined twice: types, names, decimal numbers and choices follow the width."""
    (folder / "a.c").write_text(
        "FUNCTION T half_T(T x) {\n    U b = BITS_U(x);\n    return x * 0.5 + PICK_T(1e-3, 1e-6) + root_W(x);\n}\n"
    )
    assert library.definitions() == {
        "half_f32": "FUNCTION f32 half_f32(f32 x) {\n    u32 b = BITS_U32(x);\n"
        "    return x * 0.5f + 1e-3f + root_F32(x);\n}",
        "half_f64": "FUNCTION f64 half_f64(f64 x) {\n    u64 b = BITS_U64(x);\n"
        "    return x * 0.5 + 1e-6 + root_F64(x);\n}",
    }


def test_a_text_of_complex_numbers_is_defined_twice(folder: Path) -> None:
    """A name that ends in `_Z` is defined for each width of complex numbers, with the functions of the parts."""
    (folder / "a.c").write_text("FUNCTION Z turned_Z(Z a) {\n    return PAIR_Z(-a.y, abs_T(a.x) * 2.0);\n}\n")
    assert library.definitions() == {
        "turned_c64": "FUNCTION c64 turned_c64(c64 a) {\n    return C64(-a.y, abs_f32(a.x) * 2.0f);\n}",
        "turned_c128": "FUNCTION c128 turned_c128(c128 a) {\n    return C128(-a.y, abs_f64(a.x) * 2.0);\n}",
    }
