"""All drawings by name."""

from . import attention, block, layer, real, serving, split
from .drawing import Drawing

DRAWINGS = {
    drawn.name: drawn
    for module in (layer, attention, split, serving, block, real)
    for drawn in vars(module).values()
    if isinstance(drawn, Drawing)
}
