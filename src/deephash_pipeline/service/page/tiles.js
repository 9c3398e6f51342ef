"use strict";
// What all parts of the page use, and the tiles of pictures.
const $ = id => document.getElementById(id);
const make = (tag, className, text) => {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
};
// A proxy may have the service below a path of its own.
const below = address => address?.replace(/^\//, "");
const sized = (address, size) => `${below(address)}&size=${size}`;
const counted = number => number.toLocaleString("en");
// Of what is searched: the collections, the one that is shown, its folders, the query, and what was found.
let indexes = [], current = null, filed = {name: "", prefix: "", folders: []}, query = null, shown = [], fresh = null;

async function call(address, options) {
  let response;
  try { response = await fetch(address, options); } catch { throw new Error("The service does not answer; is it still running?"); }
  const body = await response.json().catch(() => ({error: response.statusText}));
  if (!response.ok) throw Object.assign(new Error(body.error), {status: response.status});
  return body;
}

function say(text, bad = false) { $("said").textContent = text; $("said").className = bad ? "bad" : ""; }

function nearBar(item) {
  const node = make("span", "near"), bar = make("span", "bar"), filled = make("span");
  filled.style.setProperty("--share", item.percent);
  bar.append(filled);
  node.append(bar, `${item.percent} %, ${item.near}`);
  return node;
}

// A long name is broken where its words are.
function named(className, text) {
  const node = make("span", className);
  text.split(/(?<=[_\- ])|(?=\.)/).forEach((part, place) => node.append(...(place ? [make("wbr"), part] : [part])));
  return node;
}

const nameOf = item => item.id.split("/").at(-1);
function folderOf(item) {
  const folder = item.id.split("/").slice(0, -1).join("/"), {prefix, name} = filed;
  if (prefix && folder === prefix) return name;
  return prefix && folder.startsWith(`${prefix}/`) ? folder.slice(prefix.length + 1) : folder;
}

const whereOf = item => named("where", folderOf(item) || item.label || "");

// Bits as squares; those that differ from another code are marked.
function bits(code, other, most = 32) {
  const columns = Math.ceil(code.length / Math.ceil(code.length / most));
  const rows = Math.ceil(code.length / columns), parts = {};
  [...code].forEach((bit, place) => {
    const differs = other && other[place] !== bit ? " differs" : "";
    const name = (bit === "1" ? "one" : "zero") + differs;
    parts[name] = (parts[name] || "") + `M${place % columns + 0.1} ${Math.floor(place / columns) + 0.1}h.8v.8h-.8z`;
  });
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", `0 0 ${columns} ${rows}`);
  svg.setAttribute("class", "bits");
  svg.setAttribute("role", "img");
  const differing = other ? [...code].filter((bit, place) => bit !== other[place]).length : 0;
  svg.setAttribute("aria-label", other ? `${differing} of ${code.length} bits differ` : `${code.length} bits`);
  for (const [name, path] of Object.entries(parts)) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", "path");
    node.setAttribute("class", name);
    node.setAttribute("d", path);
    svg.append(node);
  }
  return svg;
}

function pixelated(image) {
  image.addEventListener("load", () => image.classList.toggle("small", Math.max(image.naturalWidth, image.naturalHeight) < 96));
}

function tile(item, position) {
  const entry = make("li"), button = make("button", item.id === fresh ? "tile new" : "tile");
  button.type = "button";
  button.dataset.id = item.id;
  if (item.distance !== undefined) button.dataset.distance = item.distance;
  const frame = make("span", "picture"), image = make("img");
  image.alt = "";
  image.loading = position < 24 ? "eager" : "lazy";
  pixelated(image);
  image.addEventListener("error", () => { image.remove(); frame.classList.add("none"); });
  if (item.thumbnail) { image.src = sized(item.thumbnail, 320); frame.append(image); } else frame.classList.add("none");
  button.append(frame, named("name", nameOf(item)), whereOf(item));
  if (item.distance !== undefined) button.append(nearBar(item));
  if ($("codes").checked) button.append(bits(item.code, query?.code, 16));
  button.addEventListener("click", () => showLarge(shown.indexOf(item)));
  entry.append(button);
  return entry;
}

// What is there already stays as it is, so that scrolling goes on.
function show(items, kept = 0) {
  shown = items;
  const tiles = items.slice(kept).map((item, place) => tile(item, kept + place));
  if (kept) $("grid").append(...tiles); else $("grid").replaceChildren(...tiles);
}

document.addEventListener("keydown", event => {
  if (event.target.closest("input, select, dialog, #tree, summary") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") { event.preventDefault(); $("file").click(); return; }
  const tiles = [...$("grid").querySelectorAll("button")], place = tiles.indexOf(document.activeElement);
  const columns = getComputedStyle($("grid")).gridTemplateColumns.split(" ").length;
  const step = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns}[event.key];
  // From elsewhere, up and down scroll.
  if (!step || !tiles.length || (place < 0 && Math.abs(step) > 1)) return;
  const next = place < 0 ? 0 : place + step;
  if (tiles[next]) { event.preventDefault(); tiles[next].focus(); }
});
