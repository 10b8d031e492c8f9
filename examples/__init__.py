"""Example hand-ins: right, wrong, malformed and hostile, each with the verdict that it should get."""
