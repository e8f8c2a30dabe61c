"""The analyses of a comparison need no package that draws pictures."""

import subprocess
import sys

WITHOUT_MATPLOTLIB = """
import sys
sys.modules["matplotlib"] = None
import keras_attnvariants.experiments.system_analysis
"""


def test_matplotlib_is_not_needed():
    subprocess.run([sys.executable, "-c", WITHOUT_MATPLOTLIB], check=True)
