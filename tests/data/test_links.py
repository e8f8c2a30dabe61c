"""Links between words."""

import pytest

from keras_attnvariants.data.links import check_links
from keras_attnvariants.data.links import parse_links


def test_sure_and_possible_links():
    sure, possible = parse_links("0-0 1p2 3?1", False, "line 1 of a")
    assert sure == {(0, 0)} and possible == {(0, 0), (1, 2), (3, 1)}
    assert parse_links("3-1", True, "line 1 of a")[0] == {(1, 3)}
    assert parse_links("", False, "line 1 of a") == (frozenset(), frozenset())


@pytest.mark.parametrize("text", ["0", "0-", "a-b", "-1-0", "0-0,1-1", "0--1"])
def test_what_is_no_link_is_refused_with_its_place(text):
    with pytest.raises(ValueError, match=r"Received: '.*' in line 7 of a\.txt"):
        parse_links(f"1-1 {text}", False, "line 7 of a.txt")


@pytest.mark.parametrize("link", [(2, 0), (0, 3)])
def test_links_beyond_the_last_word_are_refused(link):
    check_links(frozenset({(1, 2)}), 2, 3, "line 1 of a")
    with pytest.raises(ValueError, match=f"Received: {link[0]}-{link[1]} in line 7"):
        check_links(frozenset({(1, 2), link}), 2, 3, "line 7 of a")
