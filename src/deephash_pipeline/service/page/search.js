"use strict";
// What is asked stands in the address, so that back, forward and bookmarks lead to it.
const MOST = 1000;
const NOTHING = {index: "", id: "", url: "", key: "", folder: "", near: "", many: "24", copies: "", label: "", open: ""};
let asked = {...NOTHING}, turnOfAsking = 0, seed = 0, mayHaveMore = false, loading = false;

const inAddress = () => new URLSearchParams(Object.entries(asked).filter(([name, value]) => value && name !== "thumbnail" && value !== NOTHING[name]));

// A place in the history for what is asked, or in the place of the present one.
function remember(change, anew = false) {
  asked = {...asked, ...change};
  if (anew) history.pushState(asked, "", `#${inAddress()}`); else history.replaceState(asked, "", `#${inAddress()}`);
}

function go(change) {
  remember({open: "", ...change}, true);
  scrollTo(0, 0);
  return search();
}

function fromAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  const known = Object.fromEntries(Object.entries(NOTHING).map(([name, usual]) => [name, given.get(name) ?? usual]));
  for (const name of ["near", "many"]) if (![...$(name).options].some(option => option.value === known[name])) known[name] = NOTHING[name];
  return known;
}

// The nearest of the query, or the pictures of a folder, or some at random.
async function found(count) {
  const where = {index: current.name};
  if (!query) {
    if (asked.folder) {
      return call(`v1/items?${new URLSearchParams({...where, folder: asked.folder, start: 0, count})}`);
    }
    return call(`v1/items?${new URLSearchParams({...where, count, seed})}`);
  }
  const fields = {...where, k: count}, most = current.nearness[asked.near];
  if (current.rescores) fields.rescore = true;
  else if (most) fields.radius = Math.floor(most * current.code_length);
  const answer = await nearest(fields);
  if (!current.rescores || !most) return answer;
  // They are in the order of their angles: after the first that is too far there is none.
  const results = answer.results.filter(item => current.nearness[item.near] <= most);
  return {...answer, results, more: answer.more && results.length === answer.results.length};
}

async function nearest(fields) {
  if (asked.folder) fields.folder = asked.folder;
  if (asked.label) fields.label = asked.label;
  if (asked.copies) fields.distinct = true;
  if (query.key) {
    const form = new FormData();
    for (const [name, value] of Object.entries(fields)) form.append(name, value);
    form.append("image", pictures.get(query.key).content, "picture");
    return call("v1/search", {method: "POST", body: form});
  }
  if (query.url) {
    return call("v1/search", {method: "POST", body: JSON.stringify({...fields, url: query.url}), headers: {"Content-Type": "application/json"}});
  }
  return call(`v1/search/${encodeURIComponent(query.id)}?${new URLSearchParams(fields)}`);
}

async function search() {
  const mine = ++turnOfAsking;
  showAsked();
  if ($("large").open && !asked.open) $("large").close();
  try {
    if (asked.key && !pictures.has(asked.key)) throw new Error("The picture that was searched by is not kept. Drop it again.");
    query = asked.id || asked.url || asked.key ? {id: asked.id, url: asked.url, key: asked.key} : null;
    await showQuery();
    const answer = await found(Number(asked.many));
    if (mine !== turnOfAsking) return;
    const items = query ? answer.results : answer;
    if (query) query.code = answer.query.code;
    mayHaveMore = query ? answer.more : items.length === Number(asked.many) && (Boolean(asked.folder) || items.length < current.images);
    show(items);
    sayFound(answer);
    const place = items.findIndex(item => item.id === asked.open);
    if (place >= 0) showLarge(place);
  } catch (error) {
    if (mine === turnOfAsking) { mayHaveMore = false; say(error.message, true); show([]); }
  }
}

function sayFound(answer) {
  const count = counted(shown.length), place = asked.folder ? ` in ${asked.folder}` : "";
  if (!query) {
    if (!shown.length) return say("There is no picture here yet.");
    if (asked.folder) return say(mayHaveMore ? `The first ${count} pictures${place}.` : `${count} pictures${place}.`);
    return say("Some of the pictures. Click one to see it large, or drop your own to find those like it.");
  }
  if (!shown.length) return say(`No picture${place} is that near. Choose another How near${place ? ", or all folders" : ""}.`);
  const all = counted(current.images), near = asked.near ? `, ${asked.near} or nearer` : ", nearest first";
  const codes = $("codes").checked ? `, in ${answer.milliseconds.toFixed(1)} ms` : "";
  say(`${mayHaveMore ? `The first ${count}` : count} of ${all} pictures${place}${near}${codes}${answer.approximate ? "; some near ones may be missing" : ""}.`);
}

async function loadMore() {
  if (loading || !mayHaveMore) return;
  loading = true;
  const mine = turnOfAsking, had = shown.length, step = Number(asked.many);
  try {
    if (query) {
      const count = Math.min(MOST, had + step), answer = await found(count);
      if (mine !== turnOfAsking) return;
      mayHaveMore = answer.more && count < MOST;
      show([...shown, ...answer.results.slice(had)], had);
      sayFound(answer);
    } else {
      const listed = Boolean(asked.folder);
      if (!listed) seed += 1;
      const fields = listed ? {folder: asked.folder, start: had} : {seed};
      const items = await call(`v1/items?${new URLSearchParams({index: current.name, count: step, ...fields})}`);
      if (mine !== turnOfAsking) return;
      const known = new Set(shown.map(item => item.id)), others = items.filter(item => !known.has(item.id));
      mayHaveMore = listed ? items.length === step : others.length > 0 && had + others.length < current.images;
      show([...shown, ...others], had);
      sayFound();
    }
  } catch (error) { say(error.message, true); mayHaveMore = false; } finally { loading = false; }
  fillWindow();
}

// Who has scrolled to the end is given more, and so is who sees it without scrolling.
function fillWindow() {
  const root = document.documentElement, mayScroll = root.scrollHeight > root.clientHeight;
  if (mayHaveMore && (scrollY > 0 || !mayScroll) && $("end").getBoundingClientRect().top < innerHeight + 400) loadMore();
}
new IntersectionObserver(fillWindow, {rootMargin: "400px"}).observe($("end"));
addEventListener("scroll", fillWindow, {passive: true});

async function showQuery() {
  let address = query?.key ? pictures.get(query.key).address : "";
  if (query?.id) {
    const known = asked.thumbnail ? asked : await call(`v1/items/${encodeURIComponent(query.id)}?${new URLSearchParams({index: current.name})}`);
    if (known.thumbnail) address = sized(known.thumbnail, 640);
  }
  $("query").hidden = !address;
  $("invitation").hidden = Boolean(address);
  $("drop").classList.toggle("filled", Boolean(address));
  if (address) $("query").src = address;
  $("add").hidden = !(query?.key && current.writable);
  $("others").textContent = query || asked.folder ? "Start again" : "Show others";
}

function chip(text, change) {
  const button = make("button", "", `${text} ×`);
  button.type = "button";
  button.setAttribute("aria-label", `Leave out: ${text}`);
  button.addEventListener("click", () => go(change));
  return button;
}

function showAsked() {
  for (const name of ["near", "many", "label", "url"]) $(name).value = asked[name];
  $("distinct").checked = Boolean(asked.copies);
  $("chips").replaceChildren(...(asked.folder ? [chip(`in ${asked.folder}`, {folder: ""})] : []), ...(asked.label ? [chip(asked.label, {label: ""})] : []));
  markFolder();
}

function choose(index) {
  current = index;
  showAbout();
  for (const button of $("indexes").children) button.setAttribute("aria-pressed", button.textContent === index.name);
  $("label").replaceChildren(new Option("all", ""), ...index.labels.map(name => new Option(name, name)));
  $("known-labels").replaceChildren(...index.labels.map(name => new Option(name)));
  $("url-row").hidden = !index.urls;
  $("duplicates").hidden = Boolean(index.width);
  $("duplicates").href = `duplicates?${new URLSearchParams({index: index.name})}`;
  // Of many pictures it takes seconds; pictures are shown meanwhile.
  loadFolders().catch(error => say(error.message, true));
}

function showAbout() {
  const codes = $("codes").checked ? `, ${current.code_length} bits, ${current.hasher}` : "";
  $("about").textContent = `${counted(current.images)} ${current.width ? "items" : "pictures"}${codes}`;
}

async function load() {
  indexes = await call("v1/indexes");
  $("indexes").hidden = indexes.length < 2;
  $("indexes").replaceChildren(...indexes.map(index => {
    const button = make("button", "", index.name);
    button.type = "button";
    button.addEventListener("click", () => {
      choose(index);
      go({...NOTHING, index: index.name, key: asked.key, url: asked.url, many: asked.many});
    });
    return button;
  }));
  choose(indexes.find(index => index.name === asked.index) ?? indexes[0]);
}

addEventListener("popstate", event => {
  asked = {...NOTHING, ...(event.state ?? fromAddress())};
  const index = indexes.find(index => index.name === asked.index) ?? indexes[0];
  if (index !== current) choose(index);
  search();
});
$("near").addEventListener("change", () => go({near: $("near").value}));
$("many").addEventListener("change", () => go({many: $("many").value}));
$("label").addEventListener("change", () => go({label: $("label").value}));
$("distinct").addEventListener("change", () => go({copies: $("distinct").checked ? "hide" : ""}));
$("codes").checked = localStorage.getItem("codes") === "shown";
$("codes").addEventListener("change", () => {
  localStorage.setItem("codes", $("codes").checked ? "shown" : "");
  showAbout();
  show(shown);
});
$("others").addEventListener("click", () => {
  if (query || asked.folder) return go({id: "", url: "", key: "", folder: "", thumbnail: ""});
  seed += 1;
  return search();
});

async function start() {
  try {
    asked = fromAddress();
    await load();
    remember({index: current.name});
    await search();
  } catch (error) { say(error.message, true); }
}
const started = start();
