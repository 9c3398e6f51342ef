"use strict";
const $ = id => document.getElementById(id), boxes = [...document.querySelectorAll("main input")];
const groups = [...document.querySelectorAll("main section")].map(section => ({section, boxes: [...section.querySelectorAll("input")]}));
const units = ["bytes", "kB", "MB", "GB", "TB"];
function readable(count) { let unit = 0; while (count >= 999.5 && unit < units.length - 1) { count /= 1000; unit += 1; } return `${Number(count.toPrecision(3))} ${units[unit]}`; }
const marked = () => boxes.filter(box => box.checked);
function count() {
  const some = marked();
  $("count").value = `${some.length.toLocaleString("en")} marked to move away, ${readable(some.reduce((sum, box) => sum + Number(box.dataset.bytes), 0))}`;
  for (const name of ["save", "script"]) $(name).disabled = !some.length;
  for (const {section, boxes} of groups) section.querySelector(":scope > p").hidden = boxes.some(box => !box.checked);
}

// What is verified may go, whichever of a group is kept; the rest is to be looked at, and stays.
const orders = {
  largest: (one, other) => other.dataset.pixels - one.dataset.pixels || other.dataset.bytes - one.dataset.bytes,
  oldest: (one, other) => age(one).localeCompare(age(other)),
  folder: (one, other) => isIn(other) - isIn(one),
};
const age = box => (box.dataset.taken || box.dataset.changed).replace(/^(\d{4})[:-](\d\d)[:-]/, "$1-$2-");
const isIn = box => Number(box.dataset.path.startsWith($("folder").value.replace(/[\\/]*$/, "/")));
function choose() {
  const rule = $("rule").value;
  $("folder-row").hidden = rule !== "folder";
  for (const {boxes} of groups) {
    const sure = boxes.filter(box => "verified" in box.dataset && !box.disabled), kept = orders[rule] && [...sure].sort(orders[rule])[0];
    const nowhere = rule === "folder" && !(sure.some(isIn) && $("folder").value);
    for (const box of boxes) {
      if (rule === "none" || nowhere || box.disabled) box.checked = false;
      else if (rule === "proposed") box.checked = "proposed" in box.dataset;
      // A copy in the reference, which stays, is enough.
      else box.checked = sure.includes(box) && (box !== kept || boxes.some(other => other.disabled && "verified" in other.dataset));
    }
  }
  count();
}

function save(name, text) {
  const link = document.createElement("a");
  Object.assign(link, {download: name, href: URL.createObjectURL(new Blob([text], {type: "text/plain;charset=utf-8"}))});
  link.click();
}

// A path that leads nowhere but down.
const below = path => path.replace(/:/g, "").split(/[\\/]/).filter(part => part && part !== "." && part !== "..").join("/");
// Each file, where it goes below the folder, and one of its group that stays.
function moves() {
  return groups.flatMap(({boxes}) => {
    const stays = boxes.find(box => !box.checked && "verified" in box.dataset) ?? boxes.find(box => !box.checked);
    return boxes.filter(box => box.checked && stays).map(box => ({path: box.dataset.path, below: below(box.dataset.path), stays: stays.dataset.path}));
  });
}
const inShell = text => `'${text.replaceAll("'", `'\\''`)}'`, inPowerShell = text => `'${text.replace(/['\u2018-\u201b]/g, "$&$&")}'`;
function shell(folder) {
  const lines = moves().map(({path, below, stays}) => `move ${inShell(path)} ${inShell(below)} ${inShell(stays)}`);
  return `#!/bin/sh
# Moves copies into a folder, below it in the folders that they were in. Nothing is deleted, nothing written over.
set -eu
folder=${inShell(folder)}
move() {
  if [ ! -e "$3" ]; then echo "stays, since $3 is gone: $1"; return; fi
  if [ ! -e "$1" ]; then echo "gone already: $1"; return; fi
  if [ -e "$folder/$2" ]; then echo "stays, since $folder/$2 is there: $1"; return; fi
  mkdir -p -- "$(dirname -- "$folder/$2")"
  mv -n -- "$1" "$folder/$2"
}
${lines.join("\n")}
`;
}
function powerShell(folder) {
  const lines = moves().map(({path, below, stays}) => `Move-Copy ${inPowerShell(path)} ${inPowerShell(below)} ${inPowerShell(stays)}`);
  return `\ufeff# Moves copies into a folder, below it in the folders that they were in. Nothing is deleted, nothing written over.
$ErrorActionPreference = 'Stop'
$folder = ${inPowerShell(folder)}
function Move-Copy($path, $below, $stays) {
  if (-not (Test-Path -LiteralPath $stays)) { Write-Output "stays, since $stays is gone: $path"; return }
  if (-not (Test-Path -LiteralPath $path)) { Write-Output "gone already: $path"; return }
  $target = [IO.Path]::Combine($folder, $below)
  if (Test-Path -LiteralPath $target) { Write-Output "stays, since $target is there: $path"; return }
  [void][IO.Directory]::CreateDirectory([IO.Path]::GetDirectoryName([IO.Path]::GetFullPath($target)))
  Move-Item -LiteralPath $path -Destination $target
}
${lines.join("\r\n")}
`;
}

$("rule").addEventListener("change", choose);
$("folder").addEventListener("input", choose);
$("save").addEventListener("click", () => save("copies.txt", marked().map(box => `${box.dataset.path}\n`).join("")));
$("script").addEventListener("click", () => {
  const folder = $("target").value.trim() || "copies";
  if ($("kind").value === "ps1") save("move-copies.ps1", powerShell(folder)); else save("move-copies.sh", shell(folder));
});
document.addEventListener("change", event => { if (boxes.includes(event.target)) count(); });

// Two pictures of a group, one over the other up to a line.
function facts(member) { return `${member.querySelector(".name").textContent}\n${member.querySelector(".facts").innerText}`; }
function large(image, member) {
  const small = member.querySelector("img");
  image.alt = member.querySelector(".name").textContent;
  image.onerror = () => { image.onerror = null; image.src = small?.src ?? ""; };
  image.src = member.dataset.large || (small?.src ?? "");
}
document.querySelector("main").addEventListener("click", event => {
  const frame = event.target.closest(".frame");
  if (!frame) return;
  const members = [...frame.closest(".group").children], chosen = frame.closest(".member");
  const other = chosen === members[0] ? members[1] : members[0];
  large($("over"), other);
  large($("under"), chosen);
  $("left").textContent = facts(other);
  $("right").textContent = facts(chosen);
  $("slide").value = 50;
  slide();
  $("compare").showModal();
});
function slide() { $("stage").style.setProperty("--at", `${$("slide").value}%`); }
$("slide").addEventListener("input", slide);
$("stage").addEventListener("pointermove", event => {
  if (event.buttons !== 1 && event.pointerType === "mouse") return;
  const {left, width} = $("stage").getBoundingClientRect();
  $("slide").value = 100 * (event.clientX - left) / width;
  slide();
});
$("close").addEventListener("click", () => $("compare").close());
// A browser that goes back keeps marks of its own.
count();
