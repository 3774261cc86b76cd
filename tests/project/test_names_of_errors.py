"""Errors are called by where users find them: tracebacks and stored histories show that name."""

import importlib

import pytest


@pytest.mark.parametrize("package", ["schedule", "scheduler", "timerqueue"])
def test_an_error_is_named_by_the_package_that_users_import_it_from(package):
    """Not by a private module, which moves when the inside is rebuilt."""
    module = importlib.import_module(package)
    errors = [each for each in map(module.__dict__.get, module.__all__) if isinstance(each, type)]
    named = {each.__module__ for each in errors if issubclass(each, Exception)}
    assert named <= {"schedule", "scheduler", "timerqueue"}
    assert package in named
