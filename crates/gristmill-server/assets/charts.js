// Draws the minutes of a queue, or of all of them, where a page has room for it. Each
// picture has the same numbers beside it as a table.
(() => {
  "use strict";
  const drawn = new Map();
  const color = (name) => {
    const probe = document.createElement("i");
    probe.className = `probe ${name}`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };
  const seconds = (span) => parseInt(span, 10) * { m: 60, h: 3600, d: 86400 }[span.at(-1)];
  // How long tasks had waited is known by bucket: within one, the wait is guessed from how
  // far into it the share reaches. The last bucket has no end; twice its begin is shown.
  const bounds = [["100ms", 0.1], ["1s", 1], ["10s", 10], ["1m", 60], ["10m", 600], ["1h", 3600], ["longer", 7200]];
  const within = (waits, share) => {
    let left = bounds.reduce((sum, [name]) => sum + (waits?.[name] ?? 0), 0) * share;
    if (!left) return null;
    let from = 0.01;
    for (const [name, to] of bounds) {
      const n = waits[name] ?? 0;
      if (n && left <= n) return from * (to / from) ** (left / n);
      left -= n;
      from = to;
    }
    return from;
  };
  const spanned = (s) => {
    if (s < 0.9995) return `${Math.max(1, Math.round(s * 1000))}ms`;
    for (const [unit, of] of [["h", 3600], ["m", 60]]) {
      if (s >= of) return `${+(s / of).toPrecision(2)}${unit}`;
    }
    return `${+s.toPrecision(2)}s`;
  };
  // Every step of the span, those without events too.
  const dense = (minutes, back, step) => {
    const every = seconds(step);
    const count = seconds(back) / every;
    const last = Math.floor(Date.now() / 1000 / every);
    const at = Array.from({ length: count }, (_, n) => (last - count + 1 + n) * every);
    const by = new Map(minutes.map((m) => [Math.floor(Date.parse(m.at) / 1000), m]));
    const of = (name) => at.map((t) => by.get(t)?.[name] ?? 0);
    const wait = (share) => at.map((t) => within(by.get(t)?.waits, share));
    return { at, put: of("put"), done: of("done"), failed: of("failed"), half: wait(0.5), most: wait(0.95) };
  };
  const amount = (_, v) => (v == null ? "" : v.toLocaleString());
  const series = (label, name, fill) => {
    const stroke = color(name);
    return { label, stroke, width: 1.5, points: { show: false }, value: amount, ...(fill ? { fill: color(`${name}-tint`) } : {}) };
  };
  const waited = (label, name) => ({
    ...series(label, name), points: { show: true, size: 4 }, spanGaps: false,
    value: (_, v) => (v == null ? "" : spanned(v)),
  });
  const plots = {
    flow: (d) => [[d.at, d.done, d.put], [series("done", "accent", true), series("put", "blue")]],
    failed: (d) => [[d.at, d.failed], [series("failed", "red", true)]],
    wait: (d) => [[d.at, d.half, d.most], [waited("half", "accent"), waited("95 in 100", "amber")]],
  };
  // Waits go from milliseconds to hours: each step of the axis is ten times the one before.
  const waits = {
    scales: { y: { distr: 3, range: (_, __, max) => [0.01, Math.max(2, (max ?? 1) * 1.3)] } },
    splits: (_, __, ___, max) => [0.01, ...bounds.map(([, to]) => to)].filter((to) => to <= max),
  };
  // Times as the rest of the page has them: by 24 hours, and days where midnight is.
  const two = (n) => String(n).padStart(2, "0");
  const clock = (at) => `${two(at.getHours())}:${two(at.getMinutes())}`;
  const day = (at) => at.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
  const times = (_, splits) => splits.map((t) => {
    const at = new Date(t * 1000);
    return at.getHours() || at.getMinutes() ? clock(at) : day(at);
  });
  const moment = (_, t) => {
    if (t == null) return "";
    const at = new Date(t * 1000);
    return `${day(at)} ${clock(at)}`;
  };
  const table = (data, lines, place) => {
    let box = place.parentElement.querySelector("details");
    if (!box) {
      box = document.createElement("details");
      box.className = "numbers";
      const words = document.createElement("summary");
      words.textContent = "The numbers";
      box.append(words, document.createElement("table"));
      place.after(box);
    }
    const rows = document.createElement("tbody");
    const row = (cells, kind) => {
      const tr = document.createElement("tr");
      for (const cell of cells) {
        const td = document.createElement(kind);
        td.textContent = cell;
        tr.append(td);
      }
      rows.append(tr);
    };
    row(["from", ...lines.map((line) => line.label)], "th");
    const days = data[0].at(-1) - data[0][0] > 86400;
    data[0].forEach((t, n) => {
      const values = data.slice(1).map((values) => values[n]);
      const said = values.map((v, at) => lines[at].value(null, v) || "–");
      const from = new Date(t * 1000);
      if (values.some((v) => v > 0)) row([days ? from.toLocaleString() : from.toLocaleTimeString(), ...said], "td");
    });
    box.querySelector("table").replaceChildren(rows);
  };
  const draw = (place, minutes, afresh) => {
    const [data, lines] = plots[place.dataset.plot](minutes);
    table(data, lines, place);
    const width = place.clientWidth;
    const old = drawn.get(place);
    if (old && !afresh && old.width === width) { old.setData(data); return; }
    old?.destroy();
    const axis = { stroke: color("soft"), grid: { stroke: color("line"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    const numbers = { ...axis, size: 44, values: (_, v) => v.map((n) => Number.isInteger(n) ? n.toLocaleString() : "") };
    // Without the filter, whatever is no power of ten would lose its mark.
    const spans = { ...axis, size: 44, splits: waits.splits, filter: (_, v) => v, values: (_, v) => v.map(spanned) };
    const log = place.dataset.plot === "wait";
    drawn.set(place, new uPlot({
      width, height: 150, series: [{ label: "at", value: moment }, ...lines],
      axes: [{ ...axis, size: 26, values: times }, log ? spans : numbers],
      scales: log ? waits.scales : { y: { range: (_, __, max) => [0, Math.max(1, max)] } },
      legend: { live: true }, cursor: { y: false },
    }, data, place));
  };
  let kept = null;
  const charts = async (afresh) => {
    const room = document.querySelector("[data-minutes]");
    if (!room || document.hidden) return;
    try {
      // A minute changes slowly, and a longer step more so: nobody needs it as often as
      // the rest of the page.
      const asked = new URL(room.dataset.minutes, location.href).searchParams;
      const [back, step] = [asked.get("back"), asked.get("step")];
      const good = step === "1m" ? 5000 : 60000;
      if (!afresh && kept && kept.of === room && Date.now() - kept.when < good) return;
      const answer = await fetch(room.dataset.minutes, { headers: { accept: "application/json" } });
      if (!answer.ok) return;
      const { minutes } = await answer.json();
      kept = { of: room, when: Date.now() };
      for (const place of room.querySelectorAll("[data-plot]")) draw(place, dense(minutes, back, step), afresh);
    } catch { /* the page itself says that the service does not answer */ }
  };
  window.gristmillCharts = charts;
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts(true));
  let resized = 0;
  addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(() => charts(true), 150); });
  charts(true);
})();
