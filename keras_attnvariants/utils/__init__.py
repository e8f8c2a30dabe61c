"""What every room may use and none is about: argument checks, names for types."""
