// Files and folders that are dropped on the inbox's page, or chosen there, are sent by tus 1.0.0
// in parts. What broke off goes on where it ended, also in another tab or after a crash, when
// the same files are given again. Without this script the form sends them in one piece.
"use strict";
(() => {
  const form = document.querySelector("form[data-uploads]");
  if (!form) return;
  const at = form.dataset.uploads, part = 8 << 20, said = form.querySelector("[role=status]");
  const tus = { "Tus-Resumable": "1.0.0" };
  const say = (text) => { said.textContent = text; };
  const pause = (ms) => new Promise((done) => setTimeout(done, ms));
  const text64 = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));
  const kept = (key) => JSON.parse(localStorage.getItem(key) || "null");

  class Refused extends Error {}

  // ask tries again while the server cannot be reached, or is not well.
  const ask = async (path, options) => {
    for (let tries = 0; ; tries++) {
      const r = await fetch(path, { ...options, headers: { ...tus, ...options.headers } }).catch(() => null);
      if (r && r.status < 500) return r;
      if (tries === 60) throw new Refused("the server cannot be reached; give the same files again to go on");
      say("Waiting for the server…");
      await pause(Math.min(1000 * 2 ** tries, 15000));
    }
  };

  const announce = async (meta, size) => {
    const pairs = Object.entries(meta).map(([name, value]) => name + " " + text64(value)).join(",");
    const r = await ask(at, { method: "POST", headers: { "Upload-Length": String(size), "Upload-Metadata": pairs } });
    if (!r.ok) throw new Refused(await r.text());
    return r.headers.get("Location");
  };

  // offsetOf is how much of a file the server has; -1: it does not know the file.
  const offsetOf = async (url) => {
    const r = await ask(url, { method: "HEAD" });
    return r.ok ? Number(r.headers.get("Upload-Offset")) : -1;
  };

  const sendFile = async (file, known, meta, sent) => {
    let url = known, offset = url ? await offsetOf(url) : -1;
    if (offset < 0) { url = await announce(meta, file.size); offset = 0; }
    sent(url, offset);
    while (offset < file.size) {
      const r = await ask(url, { method: "PATCH", body: file.slice(offset, offset + part),
        headers: { "Upload-Offset": String(offset), "Content-Type": "application/offset+octet-stream" } });
      const now = r.ok ? Number(r.headers.get("Upload-Offset")) : r.status === 409 ? await offsetOf(url) : -1;
      if (now < 0) throw new Refused(await r.text());
      offset = now;
      sent(url, offset);
    }
  };

  // sendDrop sends the files of one drop, in turn.
  const sendDrop = async (drop) => {
    const collection = form.elements.collection.value;
    const key = "bagpipe-upload:" + JSON.stringify([collection, drop.name, drop.files.map((f) => [f.path, f.file.size, f.file.lastModified])]);
    const state = kept(key) || { set: Array.from(crypto.getRandomValues(new Uint8Array(8)), (b) => b.toString(16).padStart(2, "0")).join(""), urls: {} };
    const whole = drop.files.reduce((sum, f) => sum + f.file.size, 0);
    let before = 0;
    for (const f of drop.files) {
      const meta = { collection, set: state.set, name: drop.name, path: f.path, files: String(drop.files.length) };
      await sendFile(f.file, state.urls[f.path], meta, (url, offset) => {
        state.urls[f.path] = url;
        localStorage.setItem(key, JSON.stringify(state));
        say(drop.name + ": " + (whole ? Math.floor((100 * (before + offset)) / whole) : 100) + " %");
      });
      before += f.file.size;
    }
    localStorage.removeItem(key);
  };

  const send = async (drops) => {
    try {
      for (const drop of drops) await sendDrop(drop);
      if (drops.length) location.assign(location.pathname + "?did=uploaded");
    } catch (e) {
      say(e instanceof Refused ? "Refused: " + e.message : "Broke off: " + e);
    }
  };

  // filesOf reads what was dropped: a file, or all files of a folder.
  const filesOf = async (entry, below) => {
    const path = below + entry.name;
    if (entry.isFile) return [{ path, file: await new Promise((ok, bad) => entry.file(ok, bad)) }];
    const reader = entry.createReader(), files = [];
    for (;;) {
      const some = await new Promise((ok, bad) => reader.readEntries(ok, bad));
      if (!some.length) return files;
      for (const e of some) files.push(...await filesOf(e, path + "/"));
    }
  };
  // asDrop makes the first folder of the paths the drop's name.
  const asDrop = (name, files) => ({ name, files: files.map((f) => ({ file: f.file, path: f.path.startsWith(name + "/") ? f.path.slice(name.length + 1) : f.path })) });

  form.addEventListener("dragover", (e) => { e.preventDefault(); form.classList.add("over"); });
  form.addEventListener("dragleave", () => form.classList.remove("over"));
  form.addEventListener("drop", async (e) => {
    e.preventDefault();
    form.classList.remove("over");
    const entries = [...e.dataTransfer.items].map((item) => item.webkitGetAsEntry()).filter(Boolean), drops = [];
    for (const entry of entries) drops.push(asDrop(entry.name, await filesOf(entry, "")));
    send(drops.filter((d) => d.files.length));
  });
  form.addEventListener("submit", (e) => {
    e.preventDefault();
    const files = [...form.elements.file.files].map((file) => ({ path: file.name, file }));
    const name = form.elements.name.value;
    if (files.length === 1 && !name) send([{ name: files[0].path, files }]);
    else if (files.length) send([{ name: name || "upload-" + new Date().toISOString().replace(/[-:]/g, "").slice(0, 15).replace("T", "-"), files }]);
  });
  const folder = form.querySelector("#folder");
  folder.closest("label").hidden = false;
  folder.addEventListener("change", () => {
    const files = [...folder.files].map((file) => ({ path: file.webkitRelativePath, file }));
    if (files.length) send([asDrop(files[0].path.split("/")[0], files)]);
  });
})();
