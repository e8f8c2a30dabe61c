"""The programs that this package is compared with, each in its own process."""
