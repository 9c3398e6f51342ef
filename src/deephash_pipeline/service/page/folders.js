"use strict";
// The folders that pictures lie in, as a tree of buttons.
const FEW = 12;

// Folders above others have no pictures themselves, and the sum of theirs.
function sums(folders) {
  const counts = new Map([["", 0]]);
  for (const {folder, pictures} of folders) {
    counts.set("", counts.get("") + pictures);
    const parts = folder ? folder.split("/") : [];
    parts.forEach((_, depth) => {
      const above = parts.slice(0, depth + 1).join("/");
      counts.set(above, (counts.get(above) ?? 0) + pictures);
    });
  }
  return [...counts].sort(([one], [other]) => one.split("/").join("\0") < other.split("/").join("\0") ? -1 : 1);
}

async function loadFolders() {
  const index = current;
  filed = {name: "", prefix: "", folders: []};
  $("folders").hidden = true;
  const told = await call(`v1/folders?${new URLSearchParams({index: index.name})}`);
  if (index !== current) return;
  filed = told;
  $("folders").hidden = filed.folders.length < 2;
  $("folders").open = innerWidth > 900;
  $("filter-row").hidden = filed.folders.length <= FEW;
  $("filter").value = "";
  showFolders();
  const named = new Set(filed.folders.map(({folder}) => folder.split("/").at(-1) || filed.name));
  $("label-row").hidden = !current.labels.some(label => !named.has(label));
  [...$("grid").querySelectorAll(".where")].forEach((where, place) => where.replaceWith(whereOf(shown[place])));
}

function showFolders() {
  const sought = $("filter").value.trim().toLowerCase();
  const entries = sums(filed.folders).filter(([folder]) => !sought || folder.toLowerCase().includes(sought)).slice(0, 1000);
  $("tree").replaceChildren(...entries.map(([folder, pictures]) => {
    const entry = make("li"), button = make("button"), parts = folder.split("/");
    button.type = "button";
    button.dataset.folder = folder;
    button.style.setProperty("--depth", folder && !sought ? parts.length : 0);
    button.append(make("span", "", folder ? (sought ? folder : parts.at(-1)) : `${filed.name || "All"}, all folders`), make("span", "", counted(pictures)));
    button.addEventListener("click", () => go({folder}));
    entry.append(button);
    return entry;
  }));
  markFolder();
}

function markFolder() {
  for (const button of $("tree").querySelectorAll("button")) button.setAttribute("aria-pressed", button.dataset.folder === asked.folder);
}

$("filter").addEventListener("input", showFolders);
