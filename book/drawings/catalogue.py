"""All drawings by name."""

from . import attention, layer, split
from .drawing import Drawing

DRAWINGS = {
    drawn.name: drawn
    for module in (layer, attention, split)
    for drawn in vars(module).values()
    if isinstance(drawn, Drawing)
}
