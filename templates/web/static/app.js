// The pages work without this script. It keeps the parts that show what moves up to date: one
// stream of events for all tabs of this browser, taken by the tab that holds the lock, told to
// the others; and what belongs to keys.
"use strict";
(() => {
  const base = document.body.dataset.base;
  const news = "BroadcastChannel" in window ? new BroadcastChannel("bagpipe" + base) : null;
  let paused = false, due = 0;

  // A part is exchanged at most once a second, and not while somebody works in it.
  const moved = () => {
    if (paused || due || document.hidden) return;
    due = setTimeout(() => {
      due = 0;
      const at = document.activeElement, chosen = window.getSelection();
      const busy = at && at !== document.body && at.closest("[hx-trigger]") || chosen && !chosen.isCollapsed;
      if (!busy && !paused) document.body.dispatchEvent(new CustomEvent("bagpipe:moved"));
    }, 700);
  };

  const listen = () => new Promise(() => {
    const source = new EventSource(base + "live");
    source.addEventListener("moved", () => { moved(); if (news) news.postMessage("moved"); });
  });

  if (document.body.dataset.live) {
    if (news) news.onmessage = moved;
    if (navigator.locks) navigator.locks.request("bagpipe" + base, listen);
    else listen();
    document.addEventListener("visibilitychange", moved);
    const button = document.getElementById("live");
    button.hidden = false;
    button.addEventListener("click", () => {
      paused = !paused;
      button.setAttribute("aria-pressed", String(!paused));
      document.getElementById("live-note").textContent = paused ? "what is shown stands still" : "";
      if (!paused) moved();
    });
  }

  // Opened rows stay open over an exchange.
  let open = [];
  document.body.addEventListener("htmx:beforeSwap", () => {
    open = [...document.querySelectorAll("details[open][id]")].map((d) => d.id);
  });
  document.body.addEventListener("htmx:afterSettle", () => {
    for (const id of open) { const d = document.getElementById(id); if (d) d.open = true; }
  });

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
