// Mark the words that were sought on the page that a search leads to.
//
// Sphinx has this as well, but switches it off on every page that has a search box of its own, and here all have one.
"use strict";

document.addEventListener("DOMContentLoaded", async () => {
  const article = document.querySelector("article");
  if (DOCUMENTATION_OPTIONS.pagename === "search" || !article) return;
  const words = (localStorage.getItem("sphinx_highlight_terms") ?? "").split(/\s+/).filter(Boolean);
  localStorage.removeItem("sphinx_highlight_terms");
  if (!words.length) return;
  await window.MathJax?.startup?.promise; // formulas are text until they are set
  const pattern = new RegExp(words.map((word) => word.replace(/[^\p{L}\p{N}_]/gu, "\\$&")).join("|"), "giu");
  for (const name of article.querySelectorAll("code:has(wbr)")) { // marks where it may break would hide it
    if (name.textContent.search(pattern) < 0) continue;
    for (const mark of name.querySelectorAll("wbr")) mark.remove();
    name.normalize();
  }
  const texts = document.createTreeWalker(article, NodeFilter.SHOW_TEXT), found = [];
  while (texts.nextNode()) {
    if (!texts.currentNode.parentElement.closest("script, style, svg, mjx-container, select, textarea")) found.push(texts.currentNode);
  }
  for (const text of found) {
    const pieces = text.data.split(pattern), sought = text.data.match(pattern) ?? [];
    if (!sought.length) continue;
    text.replaceWith(...pieces.flatMap((piece, i) => {
      const mark = document.createElement("mark");
      mark.className = "sought";
      mark.textContent = sought[i];
      return i < sought.length ? [piece, mark] : [piece];
    }));
  }
});
