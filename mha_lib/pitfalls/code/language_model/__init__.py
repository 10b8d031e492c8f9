"""Mistakes in the items of `language_model`: the model, its loss, and how it writes on."""
