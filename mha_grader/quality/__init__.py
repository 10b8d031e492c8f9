"""The tests of the tests."""
