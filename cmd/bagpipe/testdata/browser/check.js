// What a page must be for those who see it small, in the dark, or hear it read; it answers
// with a list of what is wrong. It holds the rules that can be told from a page by itself.
(() => {
  const wrong = [];
  const shown = (e) => e.getClientRects().length > 0 && getComputedStyle(e).visibility !== "hidden";
  const all = (selector) => [...document.querySelectorAll(selector)].filter(shown);
  const at = (e) => "<" + e.tagName.toLowerCase() + (e.id ? "#" + e.id : "") + "> " + (e.textContent || e.name || "").trim().slice(0, 40);
  const named = (e) => (e.getAttribute("aria-label") || e.textContent || e.value || "").trim() !== "" || (e.labels && [...e.labels].some((l) => l.textContent.trim() !== ""));

  if (document.scrollingElement.scrollWidth > innerWidth) wrong.push("wider than the window: " + [...document.querySelectorAll("main *")].filter((e) => e.getBoundingClientRect().right > innerWidth && !e.closest(".scroll,pre")).map(at).slice(0, 3));
  if (!document.documentElement.lang) wrong.push("no language");
  if (!document.title.trim()) wrong.push("no title");
  if (all("h1").length !== 1) wrong.push(all("h1").length + " first headings");
  if (all("main").length !== 1) wrong.push("no main part");
  let level = 0;
  for (const h of all("h1,h2,h3,h4,h5,h6")) {
    const now = Number(h.tagName[1]);
    if (now > level + 1) wrong.push("a heading leaves out a level: " + at(h));
    level = now;
  }
  for (const e of all("input:not([type=hidden]),select,textarea")) {
    const label = e.getAttribute("aria-label") || (e.labels && [...e.labels].map((l) => l.textContent).join("").trim());
    if (!label) wrong.push("a field without a label: " + at(e) + e.name);
  }
  for (const e of all("a[href],button,summary")) if (!named(e)) wrong.push("without a name: " + e.outerHTML.slice(0, 80));
  for (const e of all("img,svg")) if (!e.getAttribute("alt") && !e.getAttribute("aria-label") && e.getAttribute("aria-hidden") !== "true") wrong.push("a picture without a text: " + at(e));
  for (const e of all("th")) if (!e.scope) wrong.push("a head of a table without its scope: " + at(e));
  for (const e of all("[tabindex]")) if (e.tabIndex > 0) wrong.push("takes the focus out of turn: " + at(e));
  for (const e of all(".scroll,pre")) if (e.scrollWidth > e.clientWidth && e.tabIndex < 0) wrong.push("scrolls, but not by keys: " + at(e));
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) wrong.push("two have the id " + id);
  for (const e of all("button,summary,input,select")) {
    const r = e.getBoundingClientRect();
    if (r.width < 24 && r.height < 24 && e.type !== "checkbox") wrong.push("too small to hit: " + at(e));
  }

  // WCAG 2.2, 1.4.3: the contrast of texts with what lies behind them.
  const parts = (c) => { const n = c.match(/[\d.]+/g).map(Number); return n.length === 3 ? [...n, 1] : n; };
  const light = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = (e) => {
    for (let n = e; n; n = n.parentElement) { const c = parts(getComputedStyle(n).backgroundColor); if (c[3] > 0.99) return c; }
    return matchMedia("(prefers-color-scheme: dark)").matches ? [18, 18, 18, 1] : [255, 255, 255, 1];
  };
  const faint = new Set();
  for (const e of all("main *,header *,footer *")) {
    if (e.closest("svg") || e.disabled || ![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
    const style = getComputedStyle(e), a = light(parts(style.color)), b = light(behind(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), size = parseFloat(style.fontSize);
    const least = size >= 24 || size >= 18.66 && Number(style.fontWeight) >= 700 ? 3 : 4.5;
    if (ratio < least) faint.add("contrast " + ratio.toFixed(2) + ": " + at(e));
  }
  return wrong.concat([...faint]);
})()
