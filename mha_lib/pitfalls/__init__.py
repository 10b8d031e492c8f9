"""The pitfalls: known mistakes, each explained and as code that is wrong in exactly one way.

`words`         what is told of each mistake, a module for each family
`code`          the wrong code, a package for each assignment
`derived`       from a mistake in one head to the same mistake in a layer of several
`layers`        laws of layers: which wrong piece a layer has
`one_head`      laws of one head: what its weights do
`pieces`        wrong pieces, of which layers in two assignments are made
`weak_checks`   checks that many mistakes pass
`examples`      the items, and small inputs that expose the mistakes
`catalogue`     what the book shows of each mistake
`registry`      how code, checks, examples and styles are registered and found
`evidence`      what the laws are made of that tell a mistake by what it violates
`same_items`    items that are another item under a new name
`calls`         what a student's checker may call a right or a wrong function with
"""

from mha_lib.pitfalls.code import forms, laws, variants
from mha_lib.pitfalls.words import BANK, FAMILIES, Pitfall

__all__ = ["BANK", "FAMILIES", "Pitfall", "forms", "laws", "variants"]
