"""Processes without rights in which students' code runs, and the wire to them."""
