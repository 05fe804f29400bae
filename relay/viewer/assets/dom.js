"use strict";
// Elements are made with these two; text only ever enters the page as text, so nothing of a model is read as HTML.

/** An element: `h("a.b", {title: "t", onclick: f}, "text", child)`. */
function h(tag, properties = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  return fill(document.createElement(name || "div"), classes, properties, children);
}

/** The same, of SVG. */
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

/** The element with an id. */
const $ = (id) => document.getElementById(id);

function show(element, visible) {
  element.hidden = !visible;
}

/** 1234567 as "1,234,567". */
const count = (number) => number.toLocaleString("en-US");

/** A difference with its sign; nothing for none. */
const signed = (number) => (number > 0 ? `+${count(number)}` : number < 0 ? `−${count(-number)}` : "");

/** Seconds in a fitting unit. */
function time(seconds) {
  if (seconds >= 10) return `${seconds.toFixed(1)} s`;
  if (seconds >= 1) return `${seconds.toFixed(2)} s`;
  const milliseconds = seconds * 1000;
  return `${milliseconds.toFixed(milliseconds >= 10 ? 0 : milliseconds >= 1 ? 1 : 2)} ms`;
}

/** The number `n` of things, in words. */
const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;
