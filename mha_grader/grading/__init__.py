"""From the bytes of a hand-in to a record: rebuild, run, judge, diagnose, explain."""
