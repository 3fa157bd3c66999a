"""Tests of Karpy; `builders` makes the values they talk about."""
