// SPDX-License-Identifier: Apache-2.0
// The first screen of a report: goodput over a factor, whose chosen value selects the runs below; and the panel that a
// dot, a name of a claim or a headline opens.
"use strict";
(() => {
  const { element, label, worded } = explorer, NAMESPACE = new DOMParser().parseFromString("<svg>", "text/html").body.firstChild.namespaceURI;
  const H = 230, LEFT = 46, RIGHT = 26, TOP = 22, BOTTOM = 34;
  const root = document.getElementById("chart");
  let data, chosen, drawn = [];

  const shape = (name, attributes, ...children) => {
    const made = document.createElementNS(NAMESPACE, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };

  // The experiment with the most claims, and then the most values of a numeric factor. All but one of the other factors
  // are held, at the values of the most runs; experiments in which none must be held come first.
  function choose() {
    let best = null;
    const valid = data.runs.filter((run) => run.status === "ok");
    for (const experiment of new Set(valid.map((run) => run.experiment))) {
      const runs = valid.filter((run) => run.experiment === experiment), values = explorer.factors(experiment);
      const names = explorer.telling(runs, Object.keys(values)), claims = data.judged[experiment] ?? 0;
      const text = (name) => values[name].some((value) => value === "" || isNaN(value));
      for (const factor of [...names, null]) {
        const others = names.filter((other) => other !== factor), series = others.find(text) ?? others[0];
        const where = {}, held = others.filter((other) => other !== series);
        for (const name of held) {
          const count = (value) => runs.filter((run) => fits(run, { ...where, [name]: value })).length;
          where[name] = [...values[name]].sort((one, other) => count(other) - count(one))[0];
        }
        const drawn = runs.filter((run) => fits(run, where)), found = [...new Set(drawn.map((run) => run.factors[factor]))];
        const longest = Math.max(...(values[series] ?? [""]).map((value) => new Set(drawn.filter((run) => fits(run, series ? { [series]: value } : {})).map((run) => run.factors[factor])).size));
        if (factor && (longest < 3 || text(factor))) continue;
        const rank = [!!factor, !held.length, claims, found.length];
        const better = best ? rank.map((one, place) => one - best.rank[place]).find((one) => one) > 0 : true;
        if (better) best = { rank, experiment, factor, values: factor ? found.sort((one, other) => one - other) : [], series, where };
      }
    }
    return best;
  }
  const fits = (run, where) => Object.entries(where).every(([name, value]) => String(run.factors[name]) === value);

  const width = () => Math.max(280, root.clientWidth - 28);
  const own = () => data.runs.filter((run) => run.experiment === chosen.experiment && run.status === "ok" && fits(run, chosen.where));
  const rate = (run) => data.specs[run.run].goodput;
  const mean = (numbers) => numbers.reduce((sum, one) => sum + one, 0) / numbers.length;

  function lines() {
    const found = new Map();
    for (const run of own()) {
      const name = chosen.series ? String(run.factors[chosen.series]) : "";
      if (!found.has(name)) found.set(name, { colour: data.colours[data.specs[run.run].flows[0]?.[1]] ?? "#3d6d99", points: new Map() });
      const points = found.get(name).points, x = run.factors[chosen.factor];
      points.set(x, [...(points.get(x) ?? []), rate(run)]);
    }
    const colours = [...found.values()].map((one) => one.colour);
    const palette = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00"];
    if (new Set(colours).size < colours.length) [...found.values()].forEach((one, place) => { one.colour = palette[place % palette.length]; });
    return found;
  }

  function chart(slider) {
    const W = width(), found = lines(), xs = chosen.values, low = Math.min(...xs), high = Math.max(...xs);
    const marks = data.marks[chosen.experiment] ?? [];
    const tops = [...marks.map(([value]) => value), ...[...found.values()].flatMap((one) => [...one.points.values()].map((numbers) => Math.max(...numbers)))];
    const least = Math.min(...[...found.values()].flatMap((one) => [...one.points.values()].map(mean)));
    const top = Math.max(...tops) * 1.03 || 1, bottom = least > 0.5 * top ? least - 0.25 * (top - least) : 0;
    const scale = low > 0 && high >= 100 * low ? Math.log : Number;
    const x = (value) => LEFT + (W - LEFT - RIGHT) * (scale(value) - scale(low)) / (scale(high) - scale(low) || 1);
    const y = (value) => H - BOTTOM - (H - TOP - BOTTOM) * (value - bottom) / (top - bottom);
    const drawing = shape("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `goodput by ${chosen.factor}` });
    const power = 10 ** Math.floor(Math.log10((top - bottom) / 4));
    const step = power * ([1, 2, 2.5, 5].find((one) => one * power >= (top - bottom) / 5) ?? 10);
    for (let value = Math.ceil(bottom / step) * step; value <= top; value += step) {
      drawing.append(shape("path", { class: "grid", d: `M${LEFT} ${y(value)}H${W - RIGHT}` }), shape("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, String(+value.toFixed(6))));
    }
    let end = -Infinity;
    for (const value of xs) {
      const text = label(chosen.experiment, chosen.factor, value), half = 3.3 * text.length;
      if (x(value) - half < end + 8) continue;
      end = Math.min(x(value), W - half) + half;
      drawing.append(shape("text", { x: end - half, y: H - BOTTOM + 16, "text-anchor": "middle" }, text));
    }
    drawing.append(shape("text", { x: W - RIGHT, y: H - 4, "text-anchor": "end" }, chosen.factor.replaceAll("_", " ")), shape("text", { x: 2, y: 11 }, "goodput (Mb/s)"));
    for (const [value, label] of marks) {
      if (value > bottom && value < top) drawing.append(shape("path", { class: "stated", d: `M${LEFT} ${y(value)}H${W - RIGHT}` }, shape("title", {}, "paper: " + label)));
    }
    const cursor = shape("path", { class: "cursor" });
    drawing.append(cursor);
    for (const [name, { colour, points }] of found) {
      const means = [...points].sort(([one], [other]) => one - other).map(([value, numbers]) => [value, mean(numbers)]);
      drawing.append(shape("path", { d: "M" + means.map(([value, number]) => `${x(value).toFixed(1)} ${y(number).toFixed(1)}`).join("L"), fill: "none", stroke: colour, "stroke-width": 1.8 }));
      for (const [value, number] of means) {
        const point = shape("circle", { cx: x(value), cy: y(number), r: 4, fill: colour, class: "point" }, shape("title", {}, `${name} ${worded(chosen.experiment, chosen.factor, value)}: ${number.toPrecision(4)} Mb/s, n = ${points.get(value).length}`.trim()));
        point.onclick = () => { slider.value = xs.indexOf(value); slider.oninput(); };
        drawing.append(point);
      }
    }
    const legend = element("p", { class: "legend" }, ...[...found].filter(([name]) => name).map(([name, { colour }]) => key(colour, worded(chosen.experiment, chosen.series, name))), ...(marks.length ? [element("span", { class: "stated-key" }, "paper")] : []));
    return [drawing, legend, (value) => cursor.setAttribute("d", `M${x(value)} ${TOP}V${H - BOTTOM}`)];
  }

  // The runs of a value: the first repetition of each series.
  function show(value) {
    const runs = own().filter((run) => !chosen.factor || run.factors[chosen.factor] === value);
    const first = Math.min(...runs.map((run) => run.repetition));
    const view = { experiment: chosen.experiment, runs: [...new Set(runs.filter((run) => run.repetition === first).map((run) => run.run))].slice(0, 6), t: null, all: false };
    drawn.forEach((one) => one.destroy());
    drawn = explorer.plot(root.querySelector(".moving"), view, chosen.factor ? ["cwnd", "queue"] : ["cwnd", "acked", "queue"], chosen.factor ? 105 : 150);
    if (!chosen.factor) named();
    const where = new URLSearchParams({ explore: chosen.experiment, ...chosen.where, ...(chosen.factor ? { [chosen.factor]: value } : {}) });
    where.set("runs", view.runs.map((run) => data.specs[run].id).join(","));
    root.querySelector(".onward").replaceChildren(explorer.held(view).replace(/.$/, "$&; "), element("a", { href: "#" + where.toString().replaceAll("%2C", ",") }, "these runs in the explorer"));
    root.dataset.value = value ?? "";
  }

  // The names of the curves, below the first drawing.
  function named() {
    const curves = drawn[0]?.series.slice(1).filter((one) => one.width > 1) ?? [];
    const keys = curves.slice(0, 8).map((one) => key(typeof one.stroke === "function" ? one.stroke() : one.stroke, one.label));
    root.querySelector(".plot")?.after(element("p", { class: "legend" }, ...keys, ...(curves.length > 8 ? [`and ${curves.length - 8} more`] : [])));
  }

  function key(colour, words) {
    const sign = element("span", { class: "key" });
    sign.style.background = colour;
    return element("span", {}, sign, words);
  }

  // Without a valid run, the measured figure with the most claims: the report has it from committed runs.
  function figure() {
    const rank = (one) => 1000 * !!one.querySelector("a.runs") + one.querySelectorAll(".verdict").length;
    const [best] = [...document.querySelectorAll(".figure:has(.drawn > svg)")].sort((one, other) => rank(other) - rank(one));
    root.replaceChildren(...(best ? [element("h3", {}, element("a", { href: "#" + best.id }, best.querySelector("h3").textContent))] : ["No run of this report is valid, and no figure is drawn."]));
    if (best) root.insertAdjacentHTML("beforeend", copied(best.querySelector(".drawn"), "chart-"));
    root.dataset.ready = "figure";
  }

  // Patterns and clips are found by their ids, which must not be those of the figure in its closed drawer.
  const copied = (drawing, prefix) => drawing.outerHTML.replace(/\b(id="|url\(#|href="#)(?!explore)/g, "$1" + prefix);

  async function start() {
    data = await explorer.ready();
    chosen = choose();
    if (!chosen) return figure();
    const slider = element("input", { type: "range", min: 0, max: chosen.values.length - 1, step: 1, "aria-label": chosen.factor ?? "" });
    const output = element("output");
    const parts = [element("p", { class: "soft onward" })];
    if (chosen.factor) {
      let [drawing, legend, move] = chart(slider);
      slider.value = Math.floor(chosen.values.length / 3);
      slider.oninput = () => {
        const value = chosen.values[slider.value];
        output.textContent = worded(chosen.experiment, chosen.factor, value);
        move(value);
        show(value);
      };
      parts.unshift(drawing, element("p", { class: "slide" }, slider, output, legend), element("div", { class: "moving" }));
      new ResizeObserver(() => {  // letters keep their size: the chart is drawn for the width that it has
        if (Math.abs(drawing.viewBox.baseVal.width - width()) < 8) return;
        const old = drawing;
        [drawing, , move] = chart(slider);
        old.replaceWith(drawing);
        move(chosen.values[slider.value]);
      }).observe(root);
    } else parts.unshift(element("div", { class: "moving" }));
    root.replaceChildren(...parts);
    if (chosen.factor) slider.oninput(); else show(null);
    root.dataset.ready = "yes";
  }

  // A link to a claim or to a figure opens it next to the page; a link to any other part opens the drawer around it.
  const panel = document.getElementById("beside");
  function opened(id) {
    const target = document.getElementById(id);
    for (let one = target?.closest("details"); one; one = one.parentElement.closest("details")) one.open = true;
    if (target) target.scrollIntoView();
  }
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#claim-']");
    const target = link && document.getElementById(link.hash.slice(1));
    if (!target || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const copy = target.cloneNode(true);
    copy.removeAttribute("id");
    copy.querySelectorAll("details").forEach((one) => { one.open = one.matches(".why"); });
    const figures = [...target.querySelectorAll("a.of")].map((one) => document.querySelector(one.hash + " .drawn")).filter(Boolean);
    panel.querySelector("div").replaceChildren(copy);
    for (const one of figures.slice(0, 1)) copy.insertAdjacentHTML("afterend", copied(one, "beside-"));
    if (!panel.open) panel.show();
    panel.scrollTop = 0;
  });
  panel.querySelector("button").onclick = () => panel.close();
  addEventListener("keydown", (event) => { if (event.key === "Escape") panel.close(); });
  const follow = () => { if (location.hash.length > 1 && !location.hash.startsWith("#explore")) { panel.close(); opened(location.hash.slice(1)); } };
  addEventListener("hashchange", () => { if (location.hash.startsWith("#explore")) panel.close(); follow(); });
  const print = (open) => document.querySelectorAll("details.prints").forEach((one) => { one.open = open; });
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
  matchMedia("print").addEventListener("change", (event) => print(event.matches));
  follow();
  start();
})();
