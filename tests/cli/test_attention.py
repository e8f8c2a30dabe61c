"""`kav attention`: a picture of the weights on a sentence."""

from PIL import Image

from tests.cli.conftest import check_error
from tests.cli.conftest import stdout


def test_a_sentence_and_its_translation(kav, run_folder, tmp_path):
    picture = tmp_path / "weights.png"
    options = ("--model", run_folder, "--output", picture)
    output = stdout(kav("attention", "be la", *options, "--translation", "la be"))
    assert output == f"la be\n{picture}\n"
    with Image.open(picture) as image:
        small = image.size
    more = ("--translation", "la be " * 3)
    stdout(kav("attention", "be la", *options, *more))
    with Image.open(picture) as image:
        assert image.size[1] > small[1]


def test_a_layer_that_is_not_there(kav, run_folder, tmp_path):
    options = ("--model", run_folder, "--output", tmp_path / "weights.png")
    more = ("--translation", "la be", "--layer", 7)
    check_error(kav("attention", "be la", *options, *more), "No layer 7")
