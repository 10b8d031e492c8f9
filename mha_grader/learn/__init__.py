"""For those who learn alone: the hidden tests and the diagnosis on one's own code, on any system.

What comes of it counts nowhere: own code can do to its verdict whatever it likes, since it runs
in no sandbox. Grading never works this way.
"""
