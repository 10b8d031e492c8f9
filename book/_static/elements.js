// Three helpers for pages on which something moves.
"use strict";

/** An HTML element: its properties, its attributes (in `attributes`), and what stands in it. */
function make(name, { attributes = {}, ...properties } = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** An SVG element: its attributes, and what stands in it. */
function draw(name, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/**
 * Make a group of buttons one stop of the Tab key, in which the arrow keys move.
 * columns: how many buttons a row has; 0 if all stand in one row, in which case up and down move too.
 */
function moveWithArrows(group, columns, focused = () => {}) {
  group.addEventListener("keydown", (event) => {
    const buttons = [...group.querySelectorAll("button")], last = buttons.length - 1;
    const at = buttons.indexOf(event.target), row = columns || 1;
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, ArrowDown: at + row, ArrowUp: at - row, Home: 0, End: last }[event.key];
    if (to === undefined || at < 0) return;
    event.preventDefault();
    if (to >= 0 && to <= last) buttons[to].focus();
  });
  group.addEventListener("focusin", ({ target }) => {
    for (const button of group.querySelectorAll("button")) button.tabIndex = button === target ? 0 : -1;
    focused([...group.querySelectorAll("button")].indexOf(target));
  });
}
