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
  // Every minute of the span, those without events too.
  const dense = (minutes, back) => {
    const units = { m: 1, h: 60 };
    const count = parseInt(back, 10) * units[back.at(-1)];
    const last = Math.floor(Date.now() / 60000);
    const at = Array.from({ length: count }, (_, n) => (last - count + 1 + n) * 60);
    const by = new Map(minutes.map((m) => [Math.floor(Date.parse(m.at) / 1000), m]));
    const of = (name) => at.map((t) => by.get(t)?.[name] ?? 0);
    return { at, put: of("put"), done: of("done"), failed: of("failed") };
  };
  const series = (label, name, fill) => {
    const stroke = color(name);
    return { label, stroke, width: 1.5, points: { show: false }, ...(fill ? { fill: color(`${name}-tint`) } : {}) };
  };
  const plots = {
    flow: (d) => [[d.at, d.done, d.put], [series("done", "accent", true), series("put", "blue")]],
    failed: (d) => [[d.at, d.failed], [series("failed", "red", true)]],
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
    row(["minute", ...lines.map((line) => line.label)], "th");
    data[0].forEach((t, n) => {
      const values = data.slice(1).map((values) => values[n]);
      if (values.some((v) => v > 0)) row([new Date(t * 1000).toLocaleTimeString(), ...values], "td");
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
    drawn.set(place, new uPlot({
      width, height: 170, series: [{}, ...lines],
      axes: [axis, { ...axis, size: 44, values: (_, v) => v.map((n) => Number.isInteger(n) ? n.toLocaleString() : "") }],
      scales: { y: { range: (_, __, max) => [0, Math.max(1, max)] } },
      legend: { live: true }, cursor: { y: false },
    }, data, place));
  };
  let kept = null;
  const charts = async (afresh) => {
    const room = document.querySelector("[data-minutes]");
    if (!room || document.hidden) return;
    try {
      // A minute changes slowly: nobody needs it as often as the rest of the page.
      if (!afresh && kept && kept.of === room && Date.now() - kept.when < 5000) return;
      const answer = await fetch(room.dataset.minutes, { headers: { accept: "application/json" } });
      if (!answer.ok) return;
      const back = new URL(answer.url).searchParams.get("back") ?? "1h";
      const { minutes } = await answer.json();
      kept = { of: room, when: Date.now() };
      for (const place of room.querySelectorAll("[data-plot]")) draw(place, dense(minutes, back), afresh);
    } catch { /* the page itself says that the service does not answer */ }
  };
  window.gristmillCharts = charts;
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts(true));
  let resized = 0;
  addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(() => charts(true), 150); });
  charts(true);
})();
