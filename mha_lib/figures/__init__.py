"""What pages show.

==============  ====================================
`plotting`      one look for all charts
`head_colours`  one colour for each head
`explorer`      the heads of a model, to play with
==============  ====================================
"""
