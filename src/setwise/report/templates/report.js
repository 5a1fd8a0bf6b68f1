"use strict";
/* Shows what Python computed: every number here is looked up, none is derived from scores. */
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const one = (id) => document.getElementById(id);
  const slider = one("level");
  const rows = all("#rows > tr").map((row) => ({
    row,
    sizes: row.dataset.sizes.split(" ").map(Number),
    enters: row.dataset.enters === undefined ? null : Number(row.dataset.enters),
    chips: all("li[data-e]", row).map((chip) => [chip, Number(chip.dataset.e)]),
    more: row.querySelector(".more"),
    size: row.querySelector(".size"),
    outcome: row.querySelector(".outcome"),
  }));
  let at = data.at;
  let charts = [];

  /* ---------------------------------------------------------------- charts */
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const percent = (value) => `${(100 * value).toFixed(1)}%`;
  const marker = {
    id: "marker",
    afterDatasetsDraw(chart, _, options) {
      if (options.x === undefined || options.x === null) return;
      const { ctx, chartArea: area, scales } = chart;
      const x = scales.x.getPixelForValue(options.x);
      if (x < area.left || x > area.right) return;
      ctx.save();
      ctx.strokeStyle = options.colour;
      ctx.setLineDash([5, 4]);
      ctx.lineWidth = 1.5;
      ctx.beginPath();
      ctx.moveTo(x, area.top);
      ctx.lineTo(x, area.bottom);
      ctx.stroke();
      ctx.restore();
    },
  };

  function axis(title, more = {}) {
    return {
      title: { display: true, text: title, color: colour("--quiet") },
      grid: { color: colour("--line") },
      border: { color: colour("--line") },
      ...more,
      ticks: { color: colour("--quiet"), ...(more.ticks || {}) },
    };
  }

  function draw(id, config, follow) {
    const canvas = one(id);
    if (!canvas) return;
    const options = {
      responsive: true,
      maintainAspectRatio: false,
      animation: false,
      ...config.options,
      plugins: { legend: { display: false }, ...(config.options.plugins || {}) },
    };
    const chart = new Chart(canvas, { ...config, options, plugins: [marker] });
    charts.push({ chart, canvas, follow });
    if (follow) follow(chart, canvas);
  }

  function bars(id, names, counts, title, colourName, label) {
    draw(
      id,
      {
        type: "bar",
        data: { labels: names, datasets: [{ data: counts, backgroundColor: colour(colourName), borderRadius: 4, maxBarThickness: 46 }] },
        options: { scales: { x: axis(title, { grid: { display: false } }), y: axis("", { beginAtZero: true, title: { display: false }, ticks: { precision: 0 } }) } },
      },
      label,
    );
  }

  function drawAll() {
    charts.forEach(({ chart }) => chart.destroy());
    charts = [];
    Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
    Chart.defaults.color = colour("--quiet");
    bars("chart-sizes", data.bins, data.facts[at].histogram, "labels in the set", "--c0", (chart, canvas) => {
      const fact = data.facts[at];
      chart.data.datasets[0].data = fact.histogram;
      canvas.setAttribute("aria-label", `Histogram of set sizes${slider ? ` at confidence ${fact.text}` : ""}: ${fact.mean_size} labels on average, ${fact.single} with one, ${fact.empty} with none.`);
    });
    drawCoverage();
    for (const kind of ["class", "category"]) drawParts(kind);
    const candidates = data.candidates;
    if (candidates) {
      bars("chart-candidates", candidates.names, candidates.counts, "candidates", "--c2", (_, canvas) =>
        canvas.setAttribute("aria-label", `Histogram of candidates per row: ${candidates.mean} on average, ${candidates.single} of rows have one.`));
    }
  }

  function drawCoverage() {
    const facts = data.facts.filter((fact) => fact.seen || fact.proved);
    if (facts.length < 2) return;
    const measured = Boolean(facts[0].seen);
    const points = (pick) => facts.map((fact) => ({ x: fact.level, y: pick(fact) }));
    const flat = { clip: 6, pointRadius: 0, pointHitRadius: 6, borderWidth: 0 };
    const band = measured ? (i) => points((fact) => fact.seen[i + 1]) : (i) => points((fact) => fact.proved[i]);
    const sets = [
      { label: measured ? "95% interval" : "bracket", data: band(0), ...flat, order: 2 },
      { label: measured ? "interval, upper end" : "upper end", data: band(1), ...flat, order: 2, fill: "-1", backgroundColor: colour("--accent-soft") },
      { label: "guarantee", data: facts.filter((f) => f.promised !== null).map((f) => ({ x: f.level, y: f.promised })), ...flat, order: 1, borderWidth: 1.5, borderDash: [6, 4], borderColor: colour("--c1") },
    ];
    if (measured) sets.push({ label: "coverage", data: points((fact) => fact.seen[0]), ...flat, order: 0, borderWidth: 2.5, borderColor: colour("--c0") });
    draw(
      "chart-coverage",
      {
        type: "line",
        data: { datasets: sets },
        options: {
          parsing: false,
          interaction: { mode: "nearest", axis: "x", intersect: false },
          scales: {
            x: axis("confidence", { type: "linear", min: 0.5, max: 1 }),
            y: axis("", { max: 1, title: { display: false }, ticks: { callback: (v) => `${Math.round(100 * v)}%` } }),
          },
          plugins: {
            legend: {
              display: true,
              labels: {
                usePointStyle: true,
                color: colour("--ink"),
                filter: (item) => !item.text.includes("upper"),
                generateLabels: (chart) =>
                  chart.data.datasets.map((set, datasetIndex) => ({
                    text: set.label,
                    datasetIndex,
                    pointStyle: set.borderWidth ? "line" : "rect",
                    fillStyle: colour("--accent-soft"),
                    strokeStyle: set.borderColor || colour("--accent-soft"),
                    lineDash: set.borderDash || [],
                    lineWidth: set.borderWidth || 0,
                    fontColor: colour("--ink"),
                  })).filter((item) => !item.text.includes("upper")),
              },
            },
            tooltip: { callbacks: { title: (items) => `confidence ${items[0].parsed.x}`, label: (item) => `${item.dataset.label}: ${percent(item.parsed.y)}` } },
            marker: { x: data.facts[at].level, colour: colour("--ink") },
          },
        },
      },
      (chart, canvas) => {
        const fact = data.facts[at];
        chart.options.plugins.marker = { x: fact.level, colour: colour("--ink") };
        const seen = measured ? `coverage is ${fact.coverage}, interval ${fact.interval}` : `coverage lies between ${(fact.bracket || "").replace(" to ", " and ")}`;
        canvas.setAttribute("aria-label", `Over all confidence levels; at ${fact.text} ${seen}, guaranteed: ${fact.promise}.`);
      },
    );
  }

  function drawParts(kind) {
    const part = data.parts[kind];
    const canvas = one(`chart-${kind}`);
    if (!part || !canvas) return;
    canvas.parentElement.style.height = `${Math.max(8, 2.6 + 1.55 * part.rows.length)}rem`;
    const short = (name) => (name.length > 22 ? `${name.slice(0, 21)}…` : name);
    const bar = { grouped: false, borderSkipped: false, maxBarThickness: 18 };
    draw(
      `chart-${kind}`,
      {
        type: "bar",
        data: {
          labels: part.rows.map((row) => short(row.name)),
          datasets: [
            { ...bar, label: "coverage", order: 0, backgroundColor: colour("--c0"), data: [] },
            { ...bar, label: "95% interval", order: 1, backgroundColor: colour("--accent-soft"), borderRadius: 4, data: [] },
          ],
        },
        options: {
          indexAxis: "y",
          scales: {
            x: axis("coverage", { max: 1, ticks: { callback: (v) => `${Math.round(100 * v)}%` } }),
            y: axis("", { grid: { display: false }, title: { display: false }, ticks: { autoSkip: false } }),
          },
          plugins: {
            tooltip: {
              callbacks: {
                title: (items) => part.rows[items[0].dataIndex].name,
                label: (item) => {
                  const cell = part.rows[item.dataIndex].cells[at];
                  return `${cell[3]} of ${part.rows[item.dataIndex].n} rows (${cell[4]})`;
                },
              },
            },
          },
        },
      },
      (chart) => {
        const cells = part.rows.map((row) => row.cells[at]);
        const low = Math.min(...cells.map((cell) => cell[1]));
        chart.options.scales.x.min = Math.max(0, Math.floor(10 * (low - 0.02)) / 10);
        const wide = (1 - chart.options.scales.x.min) / 180;
        chart.data.datasets[0].data = cells.map((cell) => [cell[0] - wide, Math.min(1, cell[0] + wide)]);
        chart.data.datasets[1].data = cells.map((cell) => [cell[1], cell[2]]);
        const { promised } = data.facts[at];
        chart.options.plugins.marker = { x: promised, colour: colour("--c1") };
        canvas.setAttribute("aria-label", `Coverage by ${kind} with 95% intervals, numbers in the table beside; lowest: ${part.rows.reduce((a, b) => (a.cells[at][0] <= b.cells[at][0] ? a : b)).name}.`);
      },
    );
  }

  /* ---------------------------------------------------------------- the level */
  let speaking;
  function show(level) {
    at = level;
    const fact = data.facts[at];
    all("[data-fact]").forEach((node) => { node.textContent = fact[node.dataset.fact] ?? ""; });
    one("card").className = `card verdict ${fact.look}`;
    if (long) long.hidden = at !== data.at;
    all("#sizes td").forEach((cell, i) => { cell.textContent = fact.histogram[i].toLocaleString("en"); });
    if (slider) {
      slider.value = at;
      slider.setAttribute("aria-valuetext", fact.text);
      one("level-text").textContent = fact.text;
      one("reset").hidden = one("afterwards").hidden = at === data.at;
    }
    all("table[data-parts]").forEach((table) => {
      all("tbody tr", table).forEach((row, k) => {
        const texts = [null, ...data.parts[table.dataset.parts].rows[k].cells[at].slice(3)];
        all("td", row).forEach((cell, i) => { if (texts[i] !== null) cell.textContent = texts[i]; });
      });
    });
    charts.forEach(({ chart, canvas, follow }) => {
      if (!follow) return;
      follow(chart, canvas);
      chart.update("none");
    });
    showExamples();
  }

  function speak() {
    clearTimeout(speaking);
    speaking = setTimeout(() => {
      const fact = data.facts[at];
      const seen = fact.coverage ? `, coverage ${fact.coverage}` : fact.bracket ? `, coverage between ${fact.bracket}` : "";
      one("spoken").textContent = `Confidence ${fact.text}: ${fact.mean_size} labels per set${seen}.`;
    }, 400);
  }

  /* ---------------------------------------------------------------- examples */
  function showExamples() {
    const wanted = document.querySelector("input[name=filter]:checked")?.value ?? "all";
    const order = rows.map((each) => each.sizes[at]).sort((a, b) => b - a);
    const large = Math.max(order[Math.min(11, order.length - 1)] ?? 0, 1);
    let shown = 0;
    rows.forEach((each) => {
      const size = each.sizes[at];
      let visible = 0;
      each.chips.forEach(([chip, enters]) => {
        chip.hidden = enters > at;
        visible += enters <= at;
      });
      each.size.textContent = size;
      each.more.hidden = size > 0 && size === visible;
      each.more.textContent = size === 0 ? "empty" : `${(size - visible).toLocaleString("en")} more`;
      const missed = each.enters !== null && each.enters > at;
      if (each.outcome) {
        each.outcome.textContent = missed ? "missed" : "in the set";
        each.outcome.className = `outcome ${missed ? "out" : "in"}`;
      }
      const fits = { all: true, largest: size >= large, empty: size === 0, missed }[wanted];
      each.row.hidden = !fits;
      shown += fits;
    });
    one("shown").textContent = shown ? `${shown} of ${rows.length} examples` : `none of these ${rows.length} examples`;
  }

  /* ---------------------------------------------------------------- tables that sort */
  const value = (cell) => (cell.dataset.value === undefined ? cell.textContent.trim() : Number(cell.dataset.value));
  const before = (a, b) => (typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true }));
  all("table.sortable").forEach((table) => {
    const heads = all("thead th", table);
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const turn = head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", turn);
        const sign = turn === "ascending" ? 1 : -1;
        const lines = all("tbody tr", table).map((row) => [value(row.children[column]), row]);
        lines.sort(([a], [b]) => sign * before(a, b));
        table.tBodies[0].append(...lines.map(([, row]) => row));
      });
    });
  });

  /* ---------------------------------------------------------------- start */
  if (slider) {
    slider.addEventListener("input", () => { show(Number(slider.value)); speak(); });
    one("reset").addEventListener("click", () => { show(data.at); speak(); slider.focus(); });
  }
  all("input[name=filter]").forEach((input) => input.addEventListener("change", showExamples));
  const long = document.querySelector("details.guarantee");
  if (long && matchMedia("(max-width: 40rem)").matches) long.open = false;
  const redraw = () => { drawAll(); show(at); };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  addEventListener("beforeprint", () => { document.documentElement.dataset.print = ""; if (long) long.open = true; redraw(); });
  addEventListener("afterprint", () => { delete document.documentElement.dataset.print; redraw(); });
  redraw();
})();
