#!/usr/bin/env bash
# Builds the wheel, installs it into a new environment outside the checkout, and uses
# the command there, like a user without the repository.
#
#   tests/wheel.sh [PYTHON]
set -euo pipefail
checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=$(command -v "${1:-python3}")
[[ $python = /* ]] || python=$PWD/$python
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
export KAV_CACHE="$place/cache" COLUMNS=120
unset PYTHONPATH KERAS_BACKEND
export PIP_DISABLE_PIP_VERSION_CHECK=1

echo "Building the wheel"
# From a copy: a build folder in the checkout may hold modules that no longer exist.
mkdir source
for name in setup.cfg pyproject.toml README.md LICENSE NOTICE keras_attnvariants; do
    cp -r "$checkout/$name" source/
done
"$python" -m pip wheel --quiet --no-deps --wheel-dir dist ./source
rm -r source

echo "Installing it into a new environment (some minutes the first time)"
"$python" -m venv environment
environment/bin/python -m pip install --quiet dist/*.whl
PATH="$place/environment/bin:$PATH"
python - <<'END'
from pathlib import Path

import keras_attnvariants as kav

package = Path(kav.__file__).parent
assert "site-packages" in package.parts, package
assert (package / "py.typed").is_file()
serving = package / "serving"
assert (serving / "operators.toml").is_file()
assert (serving / "batching_params.pbtxt").is_file()
assert (serving / "messages.textproto").is_file()
assert (package / "data" / "sentencepiece.textproto").is_file()
assert (package / "evaluation" / "aligned.css").is_file()
assert (serving / "templates" / "compose.yaml").is_file()
assert (serving / "templates" / "proxy" / "nginx.conf").is_file()
page = package / "experiments" / "page"
assert (page / "templates" / "page.html").is_file()
assert (page / "specs" / "lines.json").is_file()
assert (page / "assets" / "page.css").is_file()
END

echo "Using it"
# Into files: `grep -q` on a pipe would end the command before its last line.
kav --help > help.txt
grep translate help.txt
python -m keras_attnvariants --help > help.txt
grep translate help.txt
kav presets > presets.txt
grep you2020/hc-sa/iwslt16 presets.txt
kav models > models.txt
for name in $(grep -o '^kav/[^ ]*' models.txt); do
    [ "$(kav translate --model "$name" 'Good morning.' | wc -l)" = 1 ]
done
kav corpora > corpora.txt
grep bible-de-en corpora.txt

# Sentences of made-up words, and the same words read from right to left.
python - <<'END'
import random
from pathlib import Path

random.seed(1)
words = ["".join(random.choices("abdeiklmnorstu", k=4)) for _ in range(40)]
Path("corpus").mkdir()
for split, count in (("train", 400), ("validation", 20), ("test", 10)):
    lines = [random.choices(words, k=random.randint(1, 5)) for _ in range(count)]
    for language, step in (("xx", 1), ("yy", -1)):
        text = "".join(" ".join(line[::step]) + "\n" for line in lines)
        Path("corpus", f"{split}.{language}").write_text(text)
END
corpus=(--data corpus --source xx --target yy)
kav train "${corpus[@]}" --run runs/tiny --preset kav/hc-sa/bible \
    --vocabulary-size 50 --layers 1 --width 16 --feed-forward 32 --heads 2 \
    --steps 6 --validate-every 3 --batch-tokens 512 --precision float32
kav evaluate "${corpus[@]}" --model runs/tiny > scores.txt
grep BLEU scores.txt
[ "$(kav translate --model runs/tiny < corpus/test.xx | wc -l)" = 10 ]
if kav translate --model nowhere text 2> error.txt; then exit 1; fi
[ "$(wc -l < error.txt)" = 1 ]
echo "The wheel works."
