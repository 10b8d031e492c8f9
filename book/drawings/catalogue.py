"""All drawings by name."""

from . import attention, layer
from .drawing import Drawing

DRAWINGS = {
    drawn.name: drawn
    for module in (layer, attention)
    for drawn in vars(module).values()
    if isinstance(drawn, Drawing)
}
