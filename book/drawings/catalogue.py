"""All drawings by name."""

from . import layer
from .drawing import Drawing

DRAWINGS = {
    drawn.name: drawn for module in (layer,) for drawn in vars(module).values() if isinstance(drawn, Drawing)
}
