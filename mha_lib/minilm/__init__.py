"""A small trained model, all-MiniLM-L6-v2, and what is measured on its heads.

=================  =========================================================================================
`minilm`           the model in NumPy, and the stored sample that students get
`make_sample`      how that sample was made
`browser_model`    the model in 8 bits, which a page of the book loads
`encoder`          the model in PyTorch, with a gate on every head (needs torch)
`labelled_links`   sentences in which somebody has marked which word belongs to which
`head_scores`      where heads look, as numbers, and weights between words in place of tokens
`link_answers`     how often heads, and simple rules, are right about labelled links
`link_verdicts`    whether the best head beats the rules, and by how much
`link_tables`      the verdicts on all relations, and a table of them
`related_words`    whether heads look at words of related meaning
`paraphrases`      sentences, what they mean in other words, and sentences that share only words
`prune_curve`      which heads of the model can go, and what that costs (needs torch)
=================  =========================================================================================
"""
