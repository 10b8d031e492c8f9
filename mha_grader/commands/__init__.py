"""The commands of `mha-grade`, a module each: `add` tells the command line what it takes and what it runs."""
