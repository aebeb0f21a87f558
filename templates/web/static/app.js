// The rules are:
//   - a browser has one stream, whatever its tabs: the tab that holds the lock opens it for the parts
//     that all tabs show, and hands out what comes;
//   - a part is changed node by node: focus, selection, scrolling and opened rows stay as they are;
//   - what cannot be changed so waits until nobody works in it;
//   - every page works without this script.
"use strict";
(() => {
  const base = document.body.dataset.base, me = String(Math.random());
  const news = "BroadcastChannel" in window ? new BroadcastChannel("bagpipe" + base) : null;
  const note = document.getElementById("live-note");
  let paused = false;

  // attributes makes a node's those of another, but for what a person opened.
  const attributes = (old, now) => {
    for (const a of [...old.attributes]) if (!now.hasAttribute(a.name) && !(a.name === "open" && old.tagName === "DETAILS")) old.removeAttribute(a.name);
    for (const a of now.attributes) if (old.getAttribute(a.name) !== a.value) old.setAttribute(a.name, a.value);
  };
  const keyOf = (n) => (n.nodeType === 1 && (n.dataset.id || n.id)) || "";
  const alike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && keyOf(a) === keyOf(b);

  // change makes the children of a node those of another.
  const change = (old, now) => {
    const keys = new Set([...now.childNodes].map(keyOf));
    let at = old.firstChild;
    for (const n of [...now.childNodes]) {
      while (at && keyOf(at) && !keys.has(keyOf(at))) { const gone = at; at = at.nextSibling; gone.remove(); }
      let found = at && alike(at, n) ? at : null;
      if (!found && keyOf(n)) found = [...old.childNodes].find((o) => alike(o, n)) || null;
      if (!found) { old.insertBefore(document.importNode(n, true), at); continue; }
      if (found === at) at = at.nextSibling; else old.insertBefore(found, at);
      if (found.nodeType !== 1) { if (found.data !== n.data) found.data = n.data; continue; }
      if (found.isEqualNode(n)) continue;
      attributes(found, n);
      change(found, n);
    }
    while (at) { const gone = at; at = at.nextSibling; gone.remove(); }
  };

  // busy reports whether a change would take something from whoever works in a part.
  const busy = (part, now) => {
    const chosen = window.getSelection();
    if (chosen && !chosen.isCollapsed && chosen.rangeCount && part.contains(chosen.anchorNode)) return true;
    for (let e = document.activeElement; e && e !== part; e = e.parentElement) {
      if (e === document.body) return false;
      const key = keyOf(e);
      if (key && ![...now.querySelectorAll("[data-id],[id]")].some((n) => keyOf(n) === key)) return true;
    }
    return false;
  };

  const waiting = new Map(); // what came for a part, and was not shown yet
  const show = () => {
    if (paused) return;
    for (const [address, html] of waiting) {
      const part = document.querySelector('[data-part="' + CSS.escape(address) + '"]');
      if (!part) { waiting.delete(address); continue; }
      const made = document.createElement("template");
      made.innerHTML = html;
      if (busy(part, made.content)) continue;
      waiting.delete(address);
      change(part, made.content);
    }
  };
  const take = (m) => { waiting.set(m.part, m.html); show(); };
  document.addEventListener("selectionchange", () => { if (waiting.size) show(); });
  document.addEventListener("focusout", () => { if (waiting.size) setTimeout(show, 0); });

  const mine = () => document.hidden ? [] : [...document.querySelectorAll("[data-part]")].map((e) => e.dataset.part);
  const say = (m) => { if (news) news.postMessage(m); };

  // lead keeps the stream, for as long as this tab is there.
  const lead = () => new Promise(() => {
    const tabs = new Map();
    let source = null, open = "", soon = 0;
    const again = () => {
      const parts = [...new Set([...tabs.values()].flat())].sort();
      const address = base + "live?" + parts.map((p) => "part=" + encodeURIComponent(p)).join("&");
      if (source && address === open) return;
      if (source) source.close();
      source = null;
      open = address;
      if (!parts.length) return;
      source = new EventSource(address);
      source.addEventListener("part", (e) => { const m = JSON.parse(e.data); take(m); say(m); });
    };
    const shows = (id, parts) => {
      if (parts) tabs.set(id, parts); else tabs.delete(id);
      clearTimeout(soon);
      soon = setTimeout(again, 100);
    };
    tell = () => shows(me, mine());
    heard = (m) => { if (m.id) shows(m.id, m.shows); };
    say({ leader: true });
    tell();
  });
  let tell = () => say({ id: me, shows: mine() });
  let heard = () => {};

  if (document.body.dataset.live) {
    if (news) news.onmessage = ({ data }) => { if (data.part !== undefined) take(data); else if (data.leader) tell(); else heard(data); };
    if (navigator.locks && news) { navigator.locks.request("bagpipe" + base, lead); tell(); } else lead();
    document.addEventListener("visibilitychange", () => tell());
    window.addEventListener("pagehide", () => say({ id: me }));
    window.addEventListener("pageshow", (e) => { if (e.persisted) tell(); });
    const button = document.getElementById("live");
    button.hidden = false;
    button.addEventListener("click", () => {
      paused = !paused;
      button.setAttribute("aria-pressed", String(!paused));
      note.textContent = paused ? "what is shown stands still" : "";
      show();
    });
  }

  // On a small screen the head is one line, which shows where one is, and facets are opened by whoever wants them.
  if (matchMedia("(max-width: 50rem)").matches) {
    const row = document.querySelector("header nav ul"), at = row && row.querySelector("[aria-current]"), facets = document.getElementById("facets");
    if (at) row.scrollLeft = at.offsetLeft - row.offsetLeft - 16;
    if (facets && !facets.querySelector(".on")) facets.open = false;
  }

  // Opened rows stay open where htmx exchanges something.
  let rows = [];
  document.body.addEventListener("htmx:beforeSwap", () => { rows = [...document.querySelectorAll("details[open][id]")].map((d) => d.id); });
  document.body.addEventListener("htmx:afterSettle", () => { for (const id of rows) { const d = document.getElementById(id); if (d) d.open = true; } });

  // Keys of /mine: n next, c complete, s skip, f fail; each leads to the field or the button.
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.altKey || e.metaKey || /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName)) return;
    const key = document.querySelector('[data-key="' + CSS.escape(e.key) + '"]');
    if (!key) return;
    e.preventDefault();
    key.focus();
    if (key.dataset.press) key.click();
  });

  // Ticking the first box ticks all.
  document.addEventListener("change", (e) => {
    if (e.target.id !== "all") return;
    for (const box of document.querySelectorAll('input[name="item"]')) box.checked = e.target.checked;
  });
})();
