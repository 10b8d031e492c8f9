"""The drawings of the book, made by code: a Sphinx extension.

============  ==============================================================================
`shapes`      the vocabulary: pieces, rows and columns of them, and links
`drawing`     what belongs to a drawing besides its picture
`layer` …     the drawings, each a function
`sentence`    a sentence whose tokens are coloured by attention
`catalogue`   all drawings by name
`directive`   puts them into pages
============  ==============================================================================
"""

from .directive import setup

__all__ = ["setup"]
