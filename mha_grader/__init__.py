"""Autograding for notebooks: rebuild a submission, run it in a sandbox, test it from outside, say why."""
