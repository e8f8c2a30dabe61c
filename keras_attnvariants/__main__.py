"""`python -m keras_attnvariants` is the command `kav`."""

from keras_attnvariants.cli import app

if __name__ == "__main__":
    app(prog_name="python -m keras_attnvariants")
