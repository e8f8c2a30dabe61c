"use strict";

/* The browser of attention: choose system, sentence, place and layer; then a head. */
(async () => {
  const holder = document.getElementById("attention-data");
  if (!holder) return;
  const browser = document.getElementById("browser");
  const form = browser.querySelector("form");
  const heads = browser.querySelector(".heads");
  const matrices = browser.querySelector(".matrices");
  const reading = browser.querySelector(".reading");
  const strips = {};
  for (const name of ["rows", "columns"]) {
    strips[name] = browser.querySelector(`[data-strip="${name}"]`);
  }
  const PLACES = {
    cross: ["cross-attention", "target", "source"],
    encoder: ["encoder self-attention", "source", "source"],
    decoder: ["decoder self-attention", "target", "target"],
  };
  const QUADRANTS = "phrase quadrants";
  const gram = (order) => ({ 1: "tokens", 2: "phrases" })[order] ?? `${order}-grams`;

  const inflate = async (text) => {
    const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes])
      .stream()
      .pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).json();
  };

  const options = (select, entries) => {
    const before = select.value;
    select.replaceChildren(...entries.map(([value, text]) => new Option(text, value)));
    if (entries.some(([value]) => String(value) === before)) select.value = before;
  };

  const systems = await inflate(holder.textContent);

  const current = () => {
    const system = systems[form.elements.system.value];
    return system.sentences[form.elements.sentence.value];
  };

  /* One matrix `[rows * columns]`: a head, or the mean of all. */
  const matrixOf = (layer, head) => {
    const heads = (head === "mean" ? layer.heads : [layer.heads[head]]).map((h) => h.flat());
    const sum = (cell) => heads.reduce((total, weights) => total + weights[cell], 0);
    return heads[0].map((_, cell) => sum(cell) / heads.length);
  };

  const tokens = (strip, words) => {
    strip.replaceChildren(
      ...words.flatMap((word, number) => {
        const span = document.createElement("bdi");
        span.textContent = word;
        span.dataset.number = number;
        return [span, " "];
      }),
    );
  };

  let shown = [];

  const clear = () => {
    for (const cell of browser.querySelectorAll(".on")) cell.classList.remove("on");
    for (const strip of Object.values(strips)) {
      for (const span of strip.children) span.style.removeProperty("--weight");
    }
  };

  const shade = (strip, weightOf) => {
    const words = [...strip.children];
    const weights = words.map((_, number) => weightOf(number));
    const largest = Math.max(...weights, 1e-6);
    words.forEach((word, number) =>
      word.style.setProperty("--weight", weights[number] / largest),
    );
  };

  /* Row and column of a matrix, or one of them, are pointed at. */
  const point = (part, row, column) => {
    clear();
    const { weights, rows, columns, table } = part;
    const at = (i, j) => weights[i * columns.length + j];
    if (row !== null) {
      strips.rows.children[row]?.classList.add("on");
      table.rows[row + 1].cells[0].classList.add("on");
      shade(strips.columns, (j) => (j < columns.length ? at(row, j) : 0));
    } else {
      shade(strips.rows, (i) => (i < rows.length ? at(i, column) : 0));
    }
    if (column !== null) {
      strips.columns.children[column]?.classList.add("on");
      table.rows[0].cells[column + 1].classList.add("on");
    }
    const from = row === null ? null : `“${rows[row]}”`;
    const to = column === null ? null : `“${columns[column]}”`;
    if (from && to) {
      reading.textContent = `${from} attends to ${to} with ${at(row, column).toFixed(3)}`;
    } else if (from) {
      const best = columns.reduce((a, _, j) => (at(row, j) > at(row, a) ? j : a), 0);
      reading.textContent = `${from} attends most to “${columns[best]}”, with ${at(row, best).toFixed(3)}`;
    } else {
      const best = rows.reduce((a, _, i) => (at(i, column) > at(a, column) ? i : a), 0);
      reading.textContent = `${to} gets most from “${rows[best]}”, ${at(best, column).toFixed(3)}`;
    }
  };

  const keyed = (part, event) => {
    const [row, column] = [Number(event.target.dataset.row), Number(event.target.dataset.column)];
    const last = [part.rows.length - 1, part.columns.length - 1];
    const to = {
      ArrowUp: [row - 1, column],
      ArrowDown: [row + 1, column],
      ArrowLeft: [row, column - 1],
      ArrowRight: [row, column + 1],
      Home: [event.ctrlKey ? 0 : row, 0],
      End: [event.ctrlKey ? last[0] : row, last[1]],
    }[event.key];
    if (!to) return;
    event.preventDefault();
    const [i, j] = to.map((value, axis) => Math.min(Math.max(value, 0), last[axis]));
    const cell = part.table.rows[i + 1].cells[j + 1];
    event.target.tabIndex = -1;
    cell.tabIndex = 0;
    cell.focus();
  };

  const cellOf = (tag, text, properties) =>
    Object.assign(document.createElement(tag), { textContent: text, ...properties });

  const header = (text, scope) => {
    const cell = cellOf("th", "", { scope });
    const word = cellOf("bdi", text);
    cell.append(word);
    return cell;
  };

  const draw = (part, largest) => {
    const table = document.createElement("table");
    part.table = table;
    table.className = "heat";
    table.setAttribute("role", "grid");
    table.setAttribute("aria-label", part.title);
    const head = table.createTHead().insertRow();
    head.append(cellOf("td", ""), ...part.columns.map((word) => header(word, "col")));
    const body = table.createTBody();
    part.rows.forEach((word, row) => {
      const line = body.insertRow();
      line.append(header(word, "row"));
      part.columns.forEach((_, column) => {
        const weight = part.weights[row * part.columns.length + column];
        const cell = line.insertCell();
        cell.setAttribute("role", "gridcell");
        cell.setAttribute("aria-label", weight.toFixed(3));
        cell.dataset.row = row;
        cell.dataset.column = column;
        cell.tabIndex = row || column ? -1 : 0;
        cell.style.setProperty("--weight", weight / largest);
      });
    });
    for (const event of ["pointerover", "focusin"]) {
      table.addEventListener(event, ({ target }) => {
        const cell = target.closest("td[data-row]");
        if (cell) point(part, Number(cell.dataset.row), Number(cell.dataset.column));
      });
    }
    table.addEventListener("pointerleave", clear);
    table.addEventListener("keydown", (event) => keyed(part, event));
    const figure = document.createElement("figure");
    const caption = cellOf("figcaption", part.title);
    const frame = cellOf("div", "", { className: "scroll" });
    frame.append(table);
    figure.append(caption, frame);
    return figure;
  };

  /* How near weights are to an alignment: the mean over columns of the largest weight. */
  const aligned = ({ weights, rows, columns }) => {
    const most = columns.map((_, j) =>
      Math.max(...rows.map((_, i) => weights[i * columns.length + j])),
    );
    return most.reduce((sum, weight) => sum + weight, 0) / columns.length;
  };

  const best = (entries, valueOf) =>
    entries.reduce((a, b) => (valueOf(b) > valueOf(a) ? b : a));

  /* A layer of a sentence, or one head of it, as it is drawn. */
  const partOf = (layer, head, title) => {
    const weights = matrixOf(layer, head);
    return { rows: layer.queries, columns: layer.keys, weights, title, head };
  };

  const SVG = "http://www.w3.org/2000/svg";

  /* A small picture of a matrix. */
  const thumbnail = ({ rows, columns, weights }) => {
    const picture = document.createElementNS(SVG, "svg");
    const size = [columns.length, rows.length];
    picture.setAttribute("viewBox", `0 0 ${size.join(" ")}`);
    picture.setAttribute("aria-hidden", "true");
    const largest = Math.max(...weights, 1e-6);
    weights.forEach((weight, cell) => {
      if (weight < 0.02 * largest) return;
      const square = document.createElementNS(SVG, "rect");
      const place = { x: cell % columns.length, y: Math.floor(cell / columns.length) };
      const shape = { ...place, width: 1, height: 1, "fill-opacity": (weight / largest).toFixed(2) };
      for (const [name, value] of Object.entries(shape)) square.setAttribute(name, value);
      picture.append(square);
    });
    return picture;
  };

  /* The parts that are drawn large: a head, their mean, or all quadrants. */
  const enlarge = (parts) => {
    shown = parts;
    const largest = Math.max(...shown.map((part) => Math.max(...part.weights)), 1e-6);
    matrices.replaceChildren(...shown.map((part) => draw(part, largest)));
    browser.querySelector("[data-largest]").textContent = largest.toFixed(2);
    tokens(strips.rows, shown[0].rows);
    tokens(strips.columns, shown[0].columns);
    reading.textContent = "\u00a0";
  };

  const buttonOf = ([head, parts]) => {
    const button = cellOf("button", "", { type: "button", value: head });
    if (parts.length === 1) button.append(thumbnail(parts[0]));
    const name = /\d/.test(head) ? `head ${Number(head) + 1}` : head;
    button.append(cellOf("span", name));
    button.addEventListener("click", () => {
      for (const other of heads.children) other.setAttribute("aria-pressed", other === button);
      enlarge(parts);
    });
    return button;
  };

  /* Fills the controls from left to right, then draws. */
  const update = () => {
    const { system, sentence, place, layer } = form.elements;
    const before = `${place.value} ${layer.value}`;
    options(system, systems.map((entry, number) => [number, entry.name]));
    options(
      sentence,
      systems[system.value].sentences.map((entry, number) => [number, entry.text]),
    );
    const read = current();
    const places = new Set(read.layers.map((entry) => entry.place));
    const known = Object.keys(PLACES).filter((name) => places.has(name));
    options(place, known.map((name) => [name, PLACES[name][0]]));
    const [, from, to] = PLACES[place.value];
    const title = `${from} to ${to}`;
    const ofPlace = read.layers.filter((entry) => entry.place === place.value);
    const whole = ofPlace.filter((entry) => !entry.is_quadrant);
    options(layer, whole.map((entry) => [entry.layer, entry.layer]));
    if (before !== `${place.value} ${layer.value}`) {
      const mean = (entry) => aligned(partOf(entry, "mean", title));
      layer.value = best(whole, mean).layer;
    }
    const [chosen, ...quadrants] = ofPlace
      .filter((entry) => String(entry.layer) === layer.value)
      .sort((a, b) => a.is_quadrant - b.is_quadrant);
    const numbers = Object.keys(chosen.heads);
    const single = ["mean", ...numbers].map((head) => partOf(chosen, head, title));
    const choices = single.map((part) => [part.head, [part]]);
    if (quadrants.length) {
      const named = quadrants.map((entry) =>
        partOf(entry, "mean", `${gram(entry.query_order)} to ${gram(entry.key_order)}`),
      );
      choices.push([QUADRANTS, named]);
    }
    const pressed = heads.querySelector("[aria-pressed=true]")?.value;
    browser.querySelector('[data-strip-name="rows"]').textContent = `From (${from})`;
    browser.querySelector('[data-strip-name="columns"]').textContent = `To (${to})`;
    heads.replaceChildren(...choices.map(buttonOf));
    const kept = [...heads.children].find((button) => button.value === pressed);
    (kept ?? heads.children[single.indexOf(best(single, aligned))]).click();
  };

  strips.rows.addEventListener("pointerover", ({ target }) => {
    if (target.dataset.number) point(shown[0], Number(target.dataset.number), null);
  });
  strips.columns.addEventListener("pointerover", ({ target }) => {
    if (target.dataset.number) point(shown[0], null, Number(target.dataset.number));
  });
  for (const strip of Object.values(strips)) strip.addEventListener("pointerleave", clear);
  form.addEventListener("change", update);
  form.addEventListener("submit", (event) => event.preventDefault());
  browser.hidden = false;
  update();
})();
