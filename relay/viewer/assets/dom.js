"use strict";
// `h` and `s` create all elements; strings are only inserted as text nodes, so no text of a model is parsed as HTML.

/** Create an HTML element: `h("a.b", {title: "t", onclick: f}, "text", child)` is an `a` of class `b`. */
function h(tag, properties = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  return fill(document.createElement(name || "div"), classes, properties, children);
}

/** Create an SVG element, with arguments as for `h`. */
function s(tag, properties = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), classes, properties, children);
}

function fill(element, classes, properties, children) {
  if (classes.length) element.setAttribute("class", classes.join(" "));
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** The page's element with this id. */
const $ = (id) => document.getElementById(id);

function show(element, visible) {
  element.hidden = !visible;
}

/** A number with separators: 1234567 as "1,234,567". */
const count = (number) => number.toLocaleString("en-US");

/** A difference as text with its sign; "" for 0. */
const signed = (number) => (number > 0 ? `+${count(number)}` : number < 0 ? `−${count(-number)}` : "");

/** A time given in seconds as text, in s or ms. */
function time(seconds) {
  if (seconds >= 10) return `${seconds.toFixed(1)} s`;
  if (seconds >= 1) return `${seconds.toFixed(2)} s`;
  const milliseconds = seconds * 1000;
  return `${milliseconds.toFixed(milliseconds >= 10 ? 0 : milliseconds >= 1 ? 1 : 2)} ms`;
}

/** `n` and a word in singular or plural: "1 op", "2 ops". */
const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;
