"use strict";
// Numbers as the page has them, and names that keep their direction of writing to themselves.
const page = JSON.parse(document.getElementById("data").textContent);
const NOTHING = "–";
document.documentElement.classList.add("js");

function percent(value, digits = 1) {
  return value === null ? NOTHING : `${(100 * value).toFixed(digits)}%`;
}

function figures(value, digits = 4) {
  return value === null ? NOTHING : String(Number(value.toPrecision(digits)));
}

function whole(value) {
  return value.toLocaleString("en-US");
}

function cellText(value, column) {
  if (value === null) return NOTHING;
  if (column.kind === "whole") return whole(value);
  if (column.kind === "percent") return percent(value, column.digits);
  if (column.kind === "number") return value.toFixed(column.digits);
  if (column.kind === "figures") return figures(value, column.digits);
  return String(value);
}

function element(tag, text, kind) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}
