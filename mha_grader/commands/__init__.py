"""Commands of `mha-grade`, a module each: `add(commands)` adds its parser and what it runs."""
