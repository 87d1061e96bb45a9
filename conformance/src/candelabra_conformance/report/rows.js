"use strict";
/* Long lists and tables of which only the rows that can be seen are in the document. */
const ROW = 24; // px, also in page.css
const BEYOND = 12; // rows kept above and below what is seen

function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

function sized(element, height) {
  element.style.height = `${height}px`;
  return element;
}

/* Keeps in `body` only the rows that `scroller` shows; an empty row stands for those above, and one for those below. */
class Rows {
  constructor(scroller, body, draw, rest) {
    Object.assign(this, { scroller, body, draw, rest, items: [], first: 0, last: 0, all: false });
    scroller.addEventListener("scroll", () => this.show(), { passive: true });
    new ResizeObserver(() => this.show()).observe(scroller);
  }
  set(items) {
    this.items = items;
    this.show(true);
  }
  show(anew = false) {
    const count = this.items.length;
    const seen = Math.min(this.scroller.scrollTop, Math.max(0, count * ROW - this.scroller.clientHeight));
    const first = this.all ? 0 : Math.max(0, Math.floor(seen / ROW) - BEYOND);
    const last = this.all ? count : Math.min(count, Math.ceil((seen + this.scroller.clientHeight) / ROW) + BEYOND);
    if (!anew && first === this.first && last === this.last) return;
    Object.assign(this, { first, last });
    const hadFocus = this.body.contains(document.activeElement);
    const rows = this.items.slice(first, last).map((item, at) => this.draw(item, first + at));
    this.body.replaceChildren(this.rest(first * ROW), ...rows, this.rest((count - last) * ROW));
    if (hadFocus) this.body.querySelector('[tabindex="0"]')?.focus({ preventScroll: true });
  }
  /* The row that the Tab key reaches: `at` where it is in the document, else the first that is. */
  tabbed(at) {
    return at >= this.first && at < this.last ? at : this.first;
  }
  reveal(at) {
    const head = this.scroller.querySelector("thead")?.offsetHeight ?? 0;
    const top = at * ROW, room = this.scroller.clientHeight - head - ROW;
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    if (top > this.scroller.scrollTop + room) this.scroller.scrollTop = top - room;
    this.show();
    return this.body.children[at - this.first + 1];
  }
}
