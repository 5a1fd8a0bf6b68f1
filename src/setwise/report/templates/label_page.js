"use strict";
/* One row at a time. What people wrote goes in as text, never as markup; what is entered stays in this browser. */
(() => {
  const one = (id) => document.getElementById(id);
  const data = JSON.parse(one("data").textContent);
  const rows = data.rows;
  const store = `setwise ${data.identity}`;
  const UNSURE = -1;
  const LONG = 60; // characters of a cell that gets a line of its own, before the others
  const FEW = 12; // labels that are shown without a search
  const MANY = 60; // labels that are listed at once
  const KEYS = "1234567890";
  const isLarge = data.columns.map((_, column) =>
    rows.some(({ cells }) => cells[column].picture || cells[column].length > LONG),
  );
  const order = data.columns.map((_, column) => column).sort((a, b) => isLarge[b] - isLarge[a]);
  let entered = {}; // position of a row → position of its label, or UNSURE
  let at = 0;
  let keeps = true;

  function stored(act) {
    try {
      return act();
    } catch {
      keeps = false;
      return null;
    }
  }

  function keep() {
    stored(() => localStorage.setItem(store, JSON.stringify(entered)));
    count();
  }

  function element(name, text, more = {}) {
    const made = Object.assign(document.createElement(name), more);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function content(cell, name) {
    if (cell.picture) return element("img", undefined, { src: cell.picture, alt: `${name}: ${cell.name}` });
    if (/^https?:\/\/\S+$/.test(cell)) {
      return element("a", cell, { href: cell, target: "_blank", rel: "noopener noreferrer" });
    }
    return document.createTextNode(cell);
  }

  function listed() {
    const words = one("search").value.trim().toLowerCase();
    const all = data.labels.map((_, label) => label);
    const found = all.filter((label) => data.labels[label].toLowerCase().includes(words));
    const late = (label) => !data.labels[label].toLowerCase().startsWith(words);
    return found.sort((a, b) => late(a) - late(b)).slice(0, MANY);
  }

  function showLabels() {
    const proposed = rows[at].proposed;
    one("labels").replaceChildren(
      ...listed().map((label, place) => {
        const button = element("button", undefined, { type: "button", onclick: () => choose(label) });
        button.setAttribute("aria-pressed", String(entered[at] === label));
        button.append(element("span", data.labels[label] || "(empty)"));
        if (proposed === label) button.append(element("small", "proposed"));
        if (place < KEYS.length) button.append(element("kbd", KEYS[place]));
        const item = element("li");
        item.append(button);
        return item;
      }),
    );
    one("unsure").setAttribute("aria-pressed", String(entered[at] === UNSURE));
  }

  function show(place, move = true) {
    at = Math.max(0, Math.min(rows.length - 1, place));
    const row = rows[at];
    one("where").textContent = `Row ${at + 1} of ${rows.length}`;
    one("where").append(" ", element("span", `${data.key} ${row.key}`, { className: "quiet" }));
    one("cells").replaceChildren(
      ...order.filter((column) => row.cells[column] !== "").map((column) => {
        const pair = element("div", undefined, { className: isLarge[column] ? "large" : "" });
        const value = element("dd");
        value.append(content(row.cells[column], data.columns[column]));
        pair.append(element("dt", data.columns[column]), value);
        return pair;
      }),
    );
    if (data.kind === "reviewed") {
      const label = row.proposed === null ? null : data.labels[row.proposed];
      const share = row.confidence ? `, confidence ${row.confidence}` : "";
      one("proposal").textContent = label === null ? "No label is proposed." : `Proposed: ${label}${share}.`;
      one("proposal").hidden = false;
    }
    one("back").disabled = at === 0;
    one("next").disabled = at === rows.length - 1;
    one("search").value = "";
    showLabels();
    if (move) one("row").focus({ preventScroll: true });
    if (move) one("row").scrollIntoView();
  }

  function count() {
    const values = Object.values(entered);
    const unsure = values.filter((value) => value === UNSURE).length;
    one("progress").max = rows.length;
    one("progress").value = values.length;
    const more = unsure ? `, ${unsure} unsure` : "";
    one("count").textContent = `${values.length} of ${rows.length} rows${more}`;
    const finished = values.length === rows.length;
    one("kept").textContent = [
      keeps ? "What you enter stays in this browser." : "This browser keeps nothing: download before you close the page.",
      finished ? "Every row is done: download the CSV." : "",
      unsure && data.kind === "verified" ? "Try to settle unsure rows: without them the remaining rows are no random sample." : "",
    ].join(" ");
    one("open").disabled = finished;
  }

  function nextOpen() {
    for (let step = 1; step <= rows.length; step += 1) {
      const place = (at + step) % rows.length;
      if (!(place in entered)) return place;
    }
    return at;
  }

  function choose(label) {
    entered[at] = label;
    keep();
    show(at + 1);
  }

  function csv() {
    const quoted = (text) => (/[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    const lines = rows.map((row, place) => {
      const label = entered[place];
      const written = label === undefined || label === UNSURE ? "" : data.written[label];
      return [row.key, written, ...row.marks, label === UNSURE ? "unsure" : ""];
    });
    return [data.header, ...lines].map((line) => line.map(quoted).join(",") + "\r\n").join("");
  }

  function download() {
    const address = URL.createObjectURL(new Blob([csv()], { type: "text/csv;charset=utf-8" }));
    const link = element("a", undefined, { href: address, download: data.file });
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 60000);
  }

  function pressed(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || !one("keys").checked) return;
    if (event.target === one("search")) {
      if (event.key === "Enter" && one("search").value.trim() && listed().length) choose(listed()[0]);
      return;
    }
    const place = event.key.length === 1 ? KEYS.indexOf(event.key) : -1;
    const action = { u: "unsure", n: "open", ArrowLeft: "back", ArrowRight: "next" }[event.key];
    if (place >= 0 && place < listed().length) choose(listed()[place]);
    else if (action) one(action).click();
    else if (event.key === "/" && !one("search").hidden) one("search").focus();
    else return;
    event.preventDefault();
  }

  let asked = false;
  function clear() {
    one("clear").textContent = asked ? "Delete what I entered" : "Really delete it?";
    if (asked) entered = {};
    asked = !asked;
    keep();
    showLabels();
  }

  const verifies = data.kind === "verified";
  one("kind").textContent = verifies ? "verify" : "review";
  one("title").textContent = document.title;
  one("lead").textContent = verifies
    ? "These rows were drawn at random. Give each the label that is right."
    : "These rows need a look, the most informative first. Give each the label that is right.";
  one("search").hidden = data.labels.length <= FEW;
  one("search").oninput = showLabels;
  const acts = { back: () => show(at - 1), next: () => show(at + 1), open: () => show(nextOpen()), download, clear };
  for (const [id, act] of Object.entries({ unsure: () => choose(UNSURE), ...acts })) one(id).onclick = act;
  document.addEventListener("keydown", pressed);
  addEventListener("beforeunload", (event) => {
    if (!keeps && Object.keys(entered).length) event.preventDefault();
  });
  addEventListener("storage", (event) => {
    if (event.key !== store) return;
    entered = JSON.parse(event.newValue) || {}; // the same page in another tab
    count();
    showLabels();
  });
  entered = stored(() => JSON.parse(localStorage.getItem(store))) || {};
  count();
  document.querySelector(".desk").hidden = !rows.length;
  if (rows.length) show(0 in entered ? nextOpen() : 0, false);
})();
