"use strict";
// One picture, large, with what is known of its file.
let largePlace = -1;

const UNITS = ["bytes", "kB", "MB", "GB"];
function readable(count) {
  let unit = 0;
  while (count >= 999.5 && unit < UNITS.length - 1) { count /= 1000; unit += 1; }
  return `${Number(count.toPrecision(3))} ${UNITS[unit]}`;
}

function showFacts(facts) {
  $("facts").replaceChildren(...facts.filter(([, value]) => value).flatMap(([name, value]) => [make("dt", "", name), make("dd", "", value)]));
}

async function showLarge(place) {
  const item = shown[place];
  if (!item) return;
  largePlace = place;
  if (!$("large").open) $("large").showModal();
  remember({open: item.id});
  $("large-name").textContent = nameOf(item);
  $("large-near").replaceChildren(...(item.distance === undefined ? [] : [nearBar(item)]));
  $("large-path").textContent = item.id;
  $("copied").textContent = "";
  $("before").disabled = place === 0;
  $("after").disabled = place === shown.length - 1 && !mayHaveMore;
  const picture = $("large-picture");
  picture.hidden = !item.thumbnail;
  $("no-large").hidden = Boolean(item.thumbnail);
  picture.alt = `${nameOf(item)}, large`;
  // The small one is there at once.
  if (item.thumbnail) {
    picture.src = sized(item.thumbnail, 320);
    const large = new Image();
    large.addEventListener("load", () => { if (shown[largePlace] === item) picture.src = large.src; });
    large.src = sized(item.thumbnail, 2048);
  }
  $("large-codes").replaceChildren(...($("codes").checked ? codesOf(item) : []));
  showFacts([["Folder", folderOf(item)]]);
  try {
    const known = await call(`v1/items/${encodeURIComponent(item.id)}?${new URLSearchParams({index: current.name})}`);
    if (shown[largePlace] !== item) return;
    const file = known.file;
    $("large-path").textContent = file?.path ?? item.id;
    showFacts([
      ["Folder", folderOf(item)],
      ["Size", file && `${counted(file.width)} × ${counted(file.height)}, ${readable(file.bytes)}`],
      ["Taken", file?.taken],
      ["Changed", file?.changed],
      ["Camera", file?.camera],
      ["Label", $("label-row").hidden ? "" : item.label],
      ...Object.entries(known.metadata ?? {}).map(([name, value]) => [name, String(value)]),
    ]);
  } catch (error) { $("copied").textContent = error.message; }
}

function codesOf(item) {
  if (!query?.code) return [make("h2", "", "Its code"), bits(item.code)];
  const said = make("p", "quiet", `${item.distance} of ${item.code.length} bits differ`);
  return [make("h2", "", "Codes of the query and of this picture"), bits(query.code, item.code), bits(item.code, query.code), said];
}

async function turn(step) {
  if (largePlace + step >= shown.length) await loadMore();
  showLarge(largePlace + step);
}

$("before").addEventListener("click", () => turn(-1));
$("after").addEventListener("click", () => turn(1));
$("close").addEventListener("click", () => $("large").close());
$("large").addEventListener("click", event => { if (event.target === $("large") || event.target === $("stage") || event.target === $("large-picture")) $("large").close(); });
$("large").addEventListener("keydown", event => {
  const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
  if (step) { event.preventDefault(); turn(step); }
});
$("large").addEventListener("close", () => {
  remember({open: ""});
  $("grid").children[largePlace]?.querySelector("button").focus();
});
$("more").addEventListener("click", () => {
  const {id, thumbnail} = shown[largePlace];
  largePlace = -1;
  $("large").close();
  go({id, thumbnail, key: "", url: "", open: ""});
});
$("copy").addEventListener("click", async () => {
  const path = $("large-path");
  try { await navigator.clipboard.writeText(path.textContent); } catch {
    // Without HTTPS a browser lets only what is selected be copied.
    getSelection().selectAllChildren(path);
    document.execCommand("copy");
  }
  $("copied").textContent = "The path is copied.";
});
