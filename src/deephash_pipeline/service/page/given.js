"use strict";
// Pictures that are dropped, pasted, chosen or named by an address, and those that are added to the collection.
const LARGE = 8e6;
const pictures = new Map();

// What a page of the web gives away when its picture is dragged or its address is copied.
function addressIn(data) {
  const dragged = new DOMParser().parseFromString(data.getData("text/html"), "text/html").querySelector("img")?.src;
  return [dragged, data.getData("text/uri-list"), data.getData("text/plain")].map(text => text?.trim().split(/\s/)[0]).find(text => /^https?:/i.test(text));
}

function takeFrom(data) {
  const file = [...data.files].find(file => file.type.startsWith("image/")) ?? data.files[0];
  if (file) return take(file);
  const url = addressIn(data);
  // A result of this page is shown large with a click, and searched by from there.
  if (url?.startsWith(location.origin)) return;
  if (!url) say("That is no picture. Drop or paste a picture or its file.", true);
  else if (!current?.urls) say("This service takes no addresses. Save the picture and drop its file, or start the service with --allow-urls.", true);
  else return go({url, id: "", key: ""});
}

async function take(file) {
  if (!file) return;
  let content = file;
  try {
    if (file.size > LARGE) {
      const image = await createImageBitmap(file), scale = Math.min(1, 1600 / Math.max(image.width, image.height));
      const canvas = new OffscreenCanvas(Math.round(image.width * scale), Math.round(image.height * scale));
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      content = await canvas.convertToBlob({type: "image/jpeg", quality: 0.92});
    }
  } catch { say("This file is no picture.", true); return; }
  const key = crypto.randomUUID?.() ?? String(Math.random());
  pictures.set(key, {content, address: URL.createObjectURL(content)});
  await go({key, id: "", url: ""});
}

pixelated($("query"));
$("drop").addEventListener("click", () => $("file").click());
$("file").addEventListener("change", () => { take($("file").files[0]); $("file").value = ""; });
document.addEventListener("dragover", event => { event.preventDefault(); $("drop").classList.add("over"); });
document.addEventListener("dragleave", event => { if (!event.relatedTarget) $("drop").classList.remove("over"); });
document.addEventListener("drop", event => {
  event.preventDefault();
  $("drop").classList.remove("over");
  takeFrom(event.dataTransfer);
});
document.addEventListener("paste", event => {
  if (event.clipboardData.files.length || !event.target.closest?.("input, dialog")) takeFrom(event.clipboardData);
});
$("url").addEventListener("change", () => $("url").value && go({url: $("url").value.trim(), id: "", key: ""}));

$("add").addEventListener("click", () => {
  $("token").value = sessionStorage.getItem("token") ?? "";
  $("adding-said").textContent = "";
  $("adding").showModal();
});
$("cancel").addEventListener("click", () => $("adding").close());
$("adding").querySelector("form").addEventListener("submit", async event => {
  event.preventDefault();
  const form = new FormData();
  form.append("index", current.name);
  if ($("new-label").value) form.append("label", $("new-label").value);
  if ($("new-id").value) form.append("id", $("new-id").value);
  form.append("image", pictures.get(query.key).content, "picture");
  $("send").disabled = true;
  try {
    const added = await call("v1/items", {method: "POST", body: form, headers: {Authorization: `Bearer ${$("token").value}`}});
    sessionStorage.setItem("token", $("token").value);
    fresh = added.id;
    $("adding").close();
    $("new-id").value = "";
    await load();
    await search();
    // Among many as near it comes last, perhaps beyond what is shown.
    if (!shown.some(item => item.id === fresh)) show([{...added, distance: 0}, ...shown]);
    say(`Added as ${added.id}. ${$("said").textContent}`);
  } catch (error) {
    $("adding-said").textContent = error.status === 401 ? "This is not the service's token." : error.message;
  }
  $("send").disabled = false;
});
