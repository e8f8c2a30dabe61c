"""Helpers for every folder: checks, files, caches, lines of text, names of types."""
