"""Registered corpora: importing this package registers all of them."""
