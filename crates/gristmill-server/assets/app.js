// What a page can do beyond being read: it looks again when something happened, asks before
// something is deleted, and goes by keys. Every page works without it.
(() => {
  "use strict";
  const root = document.body.dataset.root;
  const all = (what, within = document) => [...within.querySelectorAll(what)];
  const one = (what) => document.querySelector(what);

  // ---- looking again -------------------------------------------------------------------
  // Somebody who selects, writes or reads a dialog is not disturbed.
  const busy = () =>
    document.hidden ||
    one("dialog[open]") ||
    one("#live input[name=ids]:checked") ||
    one("#live :is(input, select, textarea):focus") ||
    !(window.getSelection()?.isCollapsed ?? true);
  let last = Date.now();
  let due = 0;
  // A page that took long is asked for less often: an open one has the service work for a
  // fortieth of the time at most.
  let asked = 0;
  let pause = 1500;
  const answered = () => {
    if (asked) pause = Math.max(1500, 40 * (performance.now() - asked));
    asked = 0;
  };
  const look = () => {
    due = 0;
    if (busy()) return;
    last = Date.now();
    asked = performance.now();
    htmx.trigger("#live", "refresh");
  };
  // At most once in a second and a half, however much happens.
  const soon = () => {
    if (!due) due = setTimeout(look, Math.max(100, last + pause - Date.now()));
  };
  let events = null;
  const listen = () => {
    // A browser has few connections to a site: a page that nobody sees gives its one back.
    if (document.hidden || !one("#live[hx-get]")) {
      events?.close();
      events = null;
      return;
    }
    if (events) return;
    events = new EventSource(root + "live/events");
    for (const name of ["put", "claimed", "settled", "operated", "queue", "schedule", "swept"]) {
      events.addEventListener(name, soon);
    }
  };
  document.addEventListener("visibilitychange", () => { listen(); soon(); });
  // What other processes do, and what time brings, is told by nobody.
  setInterval(() => { if (Date.now() - last > Math.max(4500, pause)) soon(); }, 1000);
  listen();

  const offline = (is) => {
    const bar = one(".offline");
    if (is && bar.hidden) one(".offline .since").textContent = new Date(last).toLocaleTimeString();
    bar.hidden = !is;
  };
  document.addEventListener("htmx:error", () => offline(true));
  document.addEventListener("htmx:after:swap", () => { answered(); offline(false); dress(); });

  // ---- counting down -------------------------------------------------------------------
  // By how much was left when the page was made: this machine's clock may be a wrong one.
  const ends = new WeakMap();
  const left = (s) => {
    const units = [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]];
    const first = units.findIndex(([, of]) => s >= of);
    if (first < 0) return "now";
    const [[unit, of], [less, by] = []] = units.slice(first, first + 2);
    const rest = less ? Math.floor((s % of) / by) : 0;
    return `in ${Math.floor(s / of)}${unit}${rest ? `${rest}${less}` : ""}`;
  };
  setInterval(() => {
    if (document.hidden) return;
    for (const time of all("time[data-left]")) {
      const end = ends.get(time);
      if (end) time.textContent = left(Math.max(0, Math.floor((end.at - performance.now()) / 1000)));
    }
  }, 1000);

  // ---- what only scripts can do --------------------------------------------------------
  const dress = () => {
    for (const button of all("[data-does]")) button.hidden = false;
    for (const time of all("time[datetime]")) {
      const at = new Date(time.dateTime);
      if (!Number.isNaN(at.getTime())) time.title = `${at.toLocaleString()} (${time.dateTime})`;
    }
    // A fire stands there as clocks of its schedule's zone show it: beside it, as mine does.
    for (const fire of all("time[data-fire]")) {
      const at = new Date(fire.dateTime);
      const mine = at.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
      if (fire.textContent.includes(` ${mine}`) || fire.parentElement.querySelector(".yours")) continue;
      const words = document.createElement("span");
      words.className = "yours";
      words.textContent = ` (yours: ${at.toLocaleDateString("en-GB", { weekday: "short" })} ${mine})`;
      fire.after(words);
    }
    for (const time of all("time[data-left]")) {
      // A page that was asked for again may say another end, or the same one anew.
      const said = `${time.dateTime} ${time.dataset.left}`;
      if (ends.get(time)?.said !== said) {
        ends.set(time, { said, at: performance.now() + 1000 * time.dataset.left });
      }
    }
    if (row) mark(row, false);
    chosen();
    window.gristmillCharts?.();
  };
  const chosen = () => {
    const n = all("input[name=ids]:checked").length;
    for (const words of all("[data-chosen]")) {
      words.textContent = n ? `With ${n} selected:` : "With selected:";
    }
  };
  const theme = () => {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const now = document.documentElement.dataset.theme ?? (dark ? "dark" : "light");
    const next = now === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    try { localStorage.setItem("gristmill-theme", next); } catch { /* not kept, then */ }
    window.gristmillCharts?.(true);
  };
  document.addEventListener("click", (event) => {
    const does = event.target.closest("[data-does]")?.dataset.does;
    if (does === "theme") theme();
    if (does === "keys") one("#keys").showModal();
    if (does === "all") {
      for (const box of all("input[name=ids]")) box.checked = event.target.checked;
    }
    if (event.target.matches("input[type=checkbox]")) chosen();
  });

  // Another queue has another contract: the form begins anew, unless somebody has written.
  document.addEventListener("change", (event) => {
    const place = event.target.dataset.begins;
    const written = one("textarea[name=payload]");
    if (!place || written.value !== written.defaultValue) return;
    location.assign(`${root}${place}?queue=${encodeURIComponent(event.target.value)}`);
  });

  // ---- asking first --------------------------------------------------------------------
  document.addEventListener("submit", (event) => {
    const { submitter, target: form } = event;
    if (form.method === "dialog" || !submitter?.dataset.ask || submitter.dataset.asked) return;
    event.preventDefault();
    const dialog = one("#ask");
    one("#ask-words").textContent = submitter.dataset.ask;
    dialog.onclose = () => {
      if (dialog.returnValue !== "yes") return;
      submitter.dataset.asked = "yes";
      form.requestSubmit(submitter);
      delete submitter.dataset.asked;
    };
    dialog.returnValue = "no";
    dialog.showModal();
  });

  // ---- keys ----------------------------------------------------------------------------
  let row = null;
  let going = false;
  const mark = (place, scroll = true) => {
    for (const other of all("tr.here")) other.classList.remove("here");
    const found = all("tr[data-row]").find((tr) => tr.dataset.row === place);
    row = found ? place : null;
    found?.classList.add("here");
    if (scroll) {
      found?.scrollIntoView({ block: "nearest" });
      found?.querySelector("th a")?.focus({ preventScroll: true });
    }
  };
  const step = (by) => {
    const rows = all("tr[data-row]");
    const at = rows.findIndex((tr) => tr.dataset.row === row);
    const next = rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + by))];
    if (next) mark(next.dataset.row);
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = event.target;
    if (at.matches("input:not([type=checkbox]), select, textarea")) {
      if (event.key === "Escape") at.blur();
      return;
    }
    if (one("dialog[open]")) return;
    if (going) {
      going = false;
      const link = one(`.side [data-key="${CSS.escape(event.key)}"]`);
      if (link) { event.preventDefault(); link.click(); }
      return;
    }
    const keys = {
      "?": () => one("#keys").showModal(),
      "/": () => one(".filter :is(input, select)")?.focus(),
      g: () => { going = true; setTimeout(() => { going = false; }, 1500); },
      j: () => step(1),
      k: () => step(-1),
      x: () => one("tr.here input[name=ids]")?.click(),
      r: () => { last = 0; look(); },
      t: theme,
    };
    if (Object.hasOwn(keys, event.key)) { event.preventDefault(); keys[event.key](); }
  });

  dress();
})();
