"""Commands of `mha-grade`, each in a module of its name that adds its parser."""
