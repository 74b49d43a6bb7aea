// SPDX-License-Identifier: Apache-2.0
// The explorer of a report: reads the samples in the page, lists the runs, draws the chosen runs over
// one time axis, and keeps the view in the address.
"use strict";
const explorer = (() => {
  const PANELS = {
    cwnd: ["congestion window (segments)", "cwnd_segments", 1],
    inflight: ["in flight (segments)", "inflight_segments", 1],
    rtt: ["smoothed RTT (ms)", "srtt_us", 0.1],
    retrans: ["retransmitted (segments)", "retrans_total", 1],
    dwnd: ["delay window (segments)", "dwnd_segments", 1],
    acked: ["acknowledged rate (Mb/s)", "acked_mbps", 0.01],
    pacing: ["pacing rate (Mb/s)", "pacing_bps", 0.01],
    delivery: ["delivery rate (Mb/s)", "delivery_bps", 0.01],
    app: ["limited by application so far (s)", "app_limited_us", 0.001],
    rwnd: ["limited by receiver so far (s)", "rwnd_limited_us", 0.001],
    sndbuf: ["limited by send buffer so far (s)", "sndbuf_limited_us", 0.001],
    queue: ["queue (packets)", "backlog_packets", 1],
  };
  // Panels that are left out if all of their values are 0. Panels of the congestion controls' own numbers follow.
  const RARE = ["dwnd", "pacing", "delivery", "app", "rwnd", "sndbuf"];
  const PALETTE = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#8a7d00", "#777777"];
  const DASHES = [[], [6, 4], [2, 3], [10, 3, 2, 3]], MOST = 8, ROWS = 300;
  const root = document.getElementById("explorer");
  const watched = new Map();
  let data, reading = null, plots = [], moving = false, started = false;
  let view = { experiment: "", where: {}, runs: [], show: ["cwnd", "rtt", "acked", "queue"], t: null, all: false };

  const element = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) made[key] = value;
      else if (value !== false && value !== null) made.setAttribute(key, value === true ? "" : value);
    }
    made.append(...children);
    return made;
  };

  const ready = () => (reading ??= read());

  async function read() {
    const packed = Uint8Array.from(atob(document.getElementById("samples").textContent), (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    data = await new Response(stream).json();
    const dark = matchMedia("(prefers-color-scheme: dark)").matches; // a dark curve would not be seen there
    for (const [name, colour] of Object.entries(data.colours)) if (dark && /^#([0-6].){3}$/.test(colour)) data.colours[name] = "#d5dbe1";
    for (const one of data.series) {
      one.t = summed(one.t).map((ms) => ms / 1000);
      for (const name in one.values) one.values[name] = summed(one.values[name]);
    }
    const sockets = data.series.filter((one) => one.table === "sockets");
    for (const name of RARE) if (!sockets.some((one) => one.values[PANELS[name][1]].some((value) => value))) delete PANELS[name];
    const states = data.series.filter((one) => one.table === "cca_state").map((one) => one.name);
    for (const name of [...new Set(states)].sort()) PANELS["cca." + name] = [name + " of the congestion control", "value", 1];
    return data;
  }

  // Numbers from the first of them and the differences of the others.
  function summed(steps) {
    let value = 0;
    return steps.map((step) => (value += step));
  }

  // The view in the address: #explore=EXPERIMENT&algorithm=standard&runs=ID,ID&show=cwnd,rtt&t=0-10&every-stream
  function fromAddress() {
    if (!location.hash.startsWith("#explore")) return false;
    const given = new URLSearchParams(location.hash.slice(1));
    const experiments = [...new Set(data.runs.map((run) => run.experiment))];
    const place = (id) => (id ? data.specs.findIndex((spec) => spec.id.startsWith(id)) : -1); // cards have the first digits
    view.runs = (given.get("runs") || "").split(",").map(place).filter((number) => number >= 0).slice(0, MOST);
    const own = view.runs.length ? entry(view.runs[0]).experiment : experiments[0] || "";
    view.experiment = experiments.includes(given.get("explore")) ? given.get("explore") : own;
    view.where = {};
    for (const [name, values] of Object.entries(factors())) {
      const wanted = given.get(name), same = (value) => value.toLowerCase() === wanted?.toLowerCase() || (wanted && Number(value) === Number(wanted));
      if (given.has(name)) view.where[name] = values.find(same) ?? wanted;
    }
    if (given.has("show")) view.show = given.get("show").split(",").filter((name) => name in PANELS);
    const span = (given.get("t") || "").split("-").map(Number);
    view.t = span.length === 2 && span[0] < span[1] ? span : null;
    view.all = given.has("every-stream");
    if (!view.runs.length) choose();
    return true;
  }

  function toAddress() {
    const given = new URLSearchParams({ explore: view.experiment, ...view.where });
    given.set("runs", view.runs.map((run) => data.specs[run].id).join(","));
    given.set("show", view.show.join(","));
    if (view.t) given.set("t", view.t.map((end) => +end.toFixed(3)).join("-"));
    if (view.all) given.set("every-stream", ""); // no factor has a hyphen in its name
    history.replaceState(null, "", location.href.split("#")[0] + "#" + given.toString().replaceAll("%2C", ","));
  }

  function factors(experiment = view.experiment) {
    const found = {};
    for (const run of data.runs) {
      if (run.experiment !== experiment) continue;
      for (const [name, value] of Object.entries(run.factors)) (found[name] ??= new Set()).add(String(value));
    }
    const order = (data.labels[experiment] ?? []).map(([name]) => name).filter((name) => found[name]);
    return Object.fromEntries([...new Set([...order, ...Object.keys(found)])].map((name) => [name, [...found[name]].sort((one, other) => one - other || one.localeCompare(other))]));
  }

  // The value of a factor as in the manifest.
  function label(experiment, name, value) {
    const known = (data.labels[experiment] ?? []).find(([factor]) => factor === name)?.[1] ?? [];
    return known.find(([given]) => String(given) === String(value))?.[1] ?? String(value);
  }
  const worded = (experiment, name, value) => (isNaN(value) || value === "" ? "" : name.replaceAll("_", " ") + " ") + label(experiment, name, value);

  // The factors that tell runs apart; one that others determine, such as a window for each rate, is left out.
  function telling(runs, names) {
    const key = (run, chosen) => JSON.stringify(chosen.map((name) => run.factors[name]));
    const number = (chosen) => new Set(runs.map((run) => key(run, chosen))).size;
    return [...names].reverse().reduce((kept, name) => {
      const fewer = kept.filter((one) => one !== name);
      return number(fewer) === number(kept) ? fewer : kept;
    }, names);
  }

  const listed = () => data.runs.filter((run) => run.experiment === view.experiment
    && Object.entries(view.where).every(([name, value]) => String(run.factors[name]) === value));

  // The first choice: the first repetition of each algorithm, with all other factors as in the last run.
  function choose() {
    const known = listed().filter((run) => run.status === "ok");
    const last = known[known.length - 1];
    if (!last) { view.runs = []; return; }
    const [first] = Object.keys(factors()).filter((name) => name === "algorithm").concat(Object.keys(factors()));
    const alike = known.filter((run) => run.repetition === known[0].repetition
      && Object.keys(run.factors).every((name) => name === first || run.factors[name] === last.factors[name]));
    view.runs = [...new Set((alike.length ? alike : [known[0]]).map((run) => run.run))].slice(0, 4);
  }

  // The colour of a congestion control where the runs differ in it, else of the place of a run.
  function colourOf(view) {
    const first = view.runs.map((run) => data.specs[run].flows[0]?.[1]);
    const apart = new Set(first).size === view.runs.length || view.runs.length === 1;
    return (run, cca) => apart ? data.colours[cca] : PALETTE[view.runs.indexOf(run) % PALETTE.length];
  }

  function curves(panel, view) {
    const [, column, factor] = PANELS[panel], found = [], look = colourOf(view);
    const table = panel === "queue" ? "queues" : panel.startsWith("cca.") ? "cca_state" : "sockets";
    const series = [...data.series].sort((one, other) => (one.flow ?? "").localeCompare(other.flow ?? "", "en", { numeric: true }) || one.stream - other.stream);
    for (const run of view.runs) {
      const spec = data.specs[run], alike = view.runs.length === 1 && spec.flows.length > 1 && new Set(spec.flows.map((flow) => flow[1])).size === 1;
      const colours = Object.fromEntries(spec.flows.map(([name, cca], place) => [name, alike ? PALETTE[place % PALETTE.length] : look(run, cca)]));
      for (const one of series) {
        if (one.run !== run || one.table !== table || (one.stream > 0 && !view.all)) continue;
        if (table === "cca_state" && one.name !== panel.slice(4)) continue;
        const of = (name, scale, none) => one.values[name].map((value) => value === none ? null : value * scale);
        const colour = (table === "queues" ? Object.values(colours)[0] : colours[one.flow]) || "#3d6d99";
        const name = named(run, view), several = table === "queues" || spec.flows.length > 1 || !name;
        const label = (name + (several ? " " + (one.flow ?? one.interface) : "") + (view.all && one.stream > 0 ? "/" + one.stream : "")).trim();
        const values = of(column, table === "cca_state" ? 10 ** one.power : factor, panel === "rtt" || panel === "dwnd" ? 0 : undefined);
        if (values.some((value) => value !== null)) found.push({ t: one.t, values, colour, label });
        if (panel === "cwnd" && spec.flows.length <= 4) {
          const threshold = of("ssthresh_segments", 1, 0);
          if (threshold.some((value) => value !== null)) found.push({ t: one.t, values: threshold, colour, label: label + " ssthresh", thin: true });
        }
      }
    }
    const rates = new Set(view.runs.map((run) => data.specs[run].capacity));
    if (["acked", "delivery"].includes(panel) && found.length && rates.size === 1 && [...rates][0]) {
      const t = [0, Math.max(...found.map((curve) => curve.t[curve.t.length - 1]))];
      found.push({ t, values: t.map(() => [...rates][0]), colour: "#888888", label: "capacity of the link", thin: true });
    }
    return found;
  }

  // The factors that are the same in all drawn runs, and the repetition.
  function held(view) {
    const chosen = view.runs.map((run) => entry(run, view));
    if (!chosen.length) return "";
    const same = Object.entries(factors(view.experiment)).filter(([name, values]) => values.length > 1 && new Set(chosen.map((one) => String(one.factors[name]))).size === 1);
    const words = same.map(([name]) => name.replaceAll("_", " ") + " " + label(view.experiment, name, chosen[0].factors[name]));
    if (new Set(chosen.map((one) => one.repetition)).size === 1) words.push("repetition " + chosen[0].repetition);
    return "held: " + words.join(", ");
  }

  // The name of a run: the factors that differ among the drawn runs.
  function named(number, from = view) {
    const chosen = from.runs.map((one) => entry(one, from)), run = entry(number, from);
    const apart = (value) => new Set(chosen.map((one) => String(value(one)))).size > 1;
    const names = Object.keys(factors(run.experiment)).filter((name) => apart((one) => one.factors[name]));
    const words = telling(chosen, names).map((name) => worded(run.experiment, name, run.factors[name]));
    if (apart((one) => one.experiment)) words.unshift(run.experiment);
    if (apart((one) => one.repetition)) words.push("repetition " + run.repetition);
    return words.join(" ");
  }

  const entry = (number, from = view) => data.runs.find((run) => run.run === number && run.experiment === from.experiment) || data.runs.find((run) => run.run === number);

  // Draw panels of a view into a place, above each other, and return the drawings.
  function plot(place, view, panels, height) {
    const made = [], style = getComputedStyle(document.documentElement), ink = style.getPropertyValue("--soft"), line = style.getPropertyValue("--line");
    place.replaceChildren();
    const end = Math.max(0, ...data.series.filter((one) => view.runs.includes(one.run)).map((one) => one.t[one.t.length - 1]));
    for (const panel of panels) {
      const found = curves(panel, view);
      if (!found.length) continue;
      const seen = {};
      const series = found.map((curve) => {
        const turn = (seen[curve.colour + !!curve.thin] = (seen[curve.colour + !!curve.thin] ?? -1) + 1);
        return { label: curve.label, stroke: curve.colour, width: curve.thin ? 1 : 1.5, dash: curve.thin ? [2, 2] : DASHES[turn % DASHES.length],
          spanGaps: true, points: { show: false }, value: (_, value) => value == null ? "-" : String(+value.toPrecision(4)) };
      });
      const box = element("div", { class: "plot", role: "img", "aria-label": PANELS[panel][0] + " of " + found.map((curve) => curve.label).join(", ") });
      place.append(element("p", { class: "quantity" }, PANELS[panel][0]), box);
      const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
      const own = new uPlot({
        width: place.clientWidth, height, series: [{ label: "time (s)", value: (_, value) => value == null ? "-" : value.toFixed(2) }, ...series],
        scales: { x: { time: false, range: () => view.t || [0, end || 1] }, y: { range: (_, low, high) => [Math.min(0, low), high > 0 ? high * 1.05 : 1] } },
        axes: [{ size: 30, ...axis }, { size: 60, ...axis }], cursor: { sync: { key: "longfat" }, drag: { x: true, y: false, setScale: false } },
        hooks: { setSelect: [(own) => view.zoom && own.select.width > 4 && view.zoom([own.posToVal(own.select.left, "x"), own.posToVal(own.select.left + own.select.width, "x")])] },
      }, uPlot.join(found.map((curve) => [curve.t, curve.values])), box);
      if (view.zoom) box.ondblclick = () => view.zoom(null);
      made.push(own);
    }
    place.dataset.drawn = made.length;
    // Also when a closed drawer opens: the place has no width before.
    watched.get(place)?.disconnect();
    watched.set(place, new ResizeObserver(() => {
      const width = place.clientWidth;
      for (const one of made) if (width && one.width !== width) one.setSize({ width, height });
    }));
    watched.get(place).observe(place);
    return made;
  }

  function draw() {
    plots.forEach((one) => one.destroy());
    const place = root.querySelector(".plots");
    plots = plot(place, Object.assign(view, { zoom }), view.show, 170);
    root.querySelector(".held").textContent = held(view);
    if (!plots.length) place.append(element("p", { class: "soft" }, view.runs.length ? "These runs have no such samples." : "Choose runs in the list."));
  }

  function zoom(span) {
    if (moving) return;
    moving = true;
    view.t = span && [Math.max(0, span[0]), span[1]];
    for (const plot of plots) { plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false); plot.setScale("x", { min: 0, max: 1 }); }
    const [from, to] = root.querySelectorAll(".span input");
    from.value = view.t ? +view.t[0].toFixed(3) : ""; to.value = view.t ? +view.t[1].toFixed(3) : "";
    toAddress();
    moving = false;
  }

  function describe() {
    const place = root.querySelector(".chosen");
    place.replaceChildren(...view.runs.map((number) => {
      const run = entry(number), spec = data.specs[number], folder = "raw/" + encodeURIComponent(spec.folder) + "/";
      const whole = `./just reproduce ${data.study} --only ${run.experiment} --profile ${data.profile} --stack ${data.stack}`;
      const lines = (numbers) => element("ul", {}, ...numbers.map((line) => element("li", {}, data.texts[line])));
      return element("details", { class: "run" },
        element("summary", {}, element("code", {}, spec.id), ` ${[run.experiment, named(number)].join(" ").trim()}, repetition ${run.repetition}: ${run.status}`),
        element("p", {}, "Run again: ", element("code", {}, `./just again ${spec.id}`), "; with all runs of its experiment: ", element("code", {}, whole)),
        element("p", {}, "Raw: ", ...["", "spec.json", "sockets.csv", "queues.csv", "achieved.json"].map((file) => element("a", { href: folder + file }, file || folder)).flatMap((link) => [link, " "])),
        element("p", {}, "Factors: ", Object.entries(run.factors).map(([name, value]) => `${name} = ${label(run.experiment, name, value)}`).join(", ") || "none"),
        ...(run.reason ? [element("p", { class: "invalid" }, run.reason)] : []),
        element("p", { class: "label" }, "Flows"), element("ul", {}, ...spec.flows.map(([name, cca, text]) => element("li", {}, `${name} (${cca}): ${text}`))),
        element("p", { class: "label" }, "Declared"), lines(spec.set), element("p", { class: "label" }, "Achieved, as read back from the kernel"), lines(spec.got));
    }));
  }

  function list() {
    const body = root.querySelector("tbody"), runs = listed(), names = Object.keys(factors());
    root.querySelector("thead").replaceChildren(element("tr", {}, ...["draw", ...names.map((name) => name.replaceAll("_", " ")), "repetition", "status", "flows", "run"].map((name) => element("th", { scope: "col" }, name))));
    body.replaceChildren(...runs.slice(0, ROWS).map((run) => {
      const spec = data.specs[run.run];
      const box = element("input", { type: "checkbox", "aria-label": "draw run " + spec.id, onchange: () => toggle(run.run, box.checked) });
      box.checked = view.runs.includes(run.run);
      return element("tr", {}, element("td", {}, box), ...names.map((name) => element("td", {}, label(run.experiment, name, run.factors[name] ?? ""))),
        element("td", {}, String(run.repetition)), element("td", { class: run.status }, run.status),
        element("td", {}, spec.flows.map((flow) => flow[0] + " " + flow[2].split(",")[0]).slice(0, 3).join("; ")), element("td", {}, element("code", {}, spec.id)));
    }));
    root.querySelector(".count").textContent = `${runs.length} of ${data.runs.length} runs` + (runs.length > ROWS ? `, the first ${ROWS} listed` : "");
  }

  function toggle(run, on) {
    view.runs = view.runs.filter((other) => other !== run);
    if (on) view.runs = [...view.runs, run].slice(-MOST);
    list(); show();
  }

  function show() { draw(); describe(); toAddress(); }

  function filters() {
    const place = root.querySelector(".where");
    place.replaceChildren(...Object.entries(factors()).filter(([, values]) => values.length > 1).map(([name, values]) => {
      const select = element("select", { name, onchange: () => {
        if (select.value) view.where[name] = select.value; else delete view.where[name];
        choose(); list(); show();
      } }, element("option", { value: "" }, "any"), ...values.map((value) => element("option", { value }, label(view.experiment, name, value))));
      select.value = view.where[name] ?? "";
      return element("label", {}, name.replaceAll("_", " ") + " ", select);
    }));
  }

  function build() {
    const experiments = [...new Set(data.runs.map((run) => run.experiment))];
    const figures = (name) => Object.entries(data.figures).filter(([, of]) => of.includes(name)).map(([figure]) => figure);
    const select = element("select", { name: "experiment", onchange: () => { view.experiment = select.value; view.where = {}; view.t = null; choose(); filters(); list(); show(); } },
      ...experiments.map((name) => element("option", { value: name }, name + (figures(name).length ? ` (${figures(name).slice(0, 3).join(", ")}${figures(name).length > 3 ? ", ..." : ""})` : ""))));
    const panels = Object.entries(PANELS).map(([name, [label]]) => {
      const box = element("input", { type: "checkbox", name, onchange: () => {
        view.show = Object.keys(PANELS).filter((other) => other === name ? box.checked : view.show.includes(other)); draw(); toAddress();
      } });
      box.checked = view.show.includes(name);
      return element("label", {}, box, " " + label);
    });
    const all = element("input", { type: "checkbox", name: "streams", onchange: () => { view.all = all.checked; draw(); toAddress(); } });
    all.checked = view.all;
    const ends = ["from", "to"].map((word) => element("input", { type: "number", min: "0", step: "any", "aria-label": word + " (seconds)", onchange: () => {
      const [from, to] = ends.map((end) => +end.value); zoom(from < to ? [from, to] : null);
    } }));
    if (view.t) ends.forEach((end, number) => { end.value = view.t[number]; });
    root.replaceChildren(
      element("div", { class: "controls" }, element("label", {}, "experiment ", select), element("span", { class: "where" })),
      element("div", { class: "controls" }, ...panels, element("label", {}, all, " all streams of a flow")),
      element("div", { class: "controls span" }, "time ", ends[0], " to ", ends[1], " s ", element("button", { type: "button", onclick: () => zoom(null) }, "whole run"),
        element("span", { class: "soft" }, " Drag over a drawing to zoom, double-click for the whole run; the address keeps the view.")),
      element("p", { class: "soft held" }),
      element("div", { class: "plots" }),
      element("div", { class: "chosen" }),
      element("p", { class: "soft count" }),
      element("div", { class: "scroll runs", tabindex: "0", role: "region", "aria-label": "runs" }, element("table", {}, element("thead"), element("tbody"))),
      ...(data.every > 1 ? [element("p", { class: "soft" }, `The page has every ${data.every}th sample; all samples are in dataset/.`)] : []));
    select.value = view.experiment;
    filters(); list(); draw(); describe();
  }

  async function start() {
    if (started) return;
    started = true;
    root.closest("details")?.setAttribute("open", "");
    try { await ready(); } catch (error) { root.textContent = "The samples cannot be read by this browser: " + error; return; }
    let owner = 0;
    for (const spec of data.specs) spec.folder = data.runs.find((run) => run.run === owner)?.folder ?? "", owner++;
    if (!fromAddress()) { view.experiment = data.runs[0]?.experiment ?? ""; choose(); }
    build();
    root.dataset.ready = "yes";
    if (location.hash.startsWith("#explore")) root.scrollIntoView();
  }

  addEventListener("hashchange", async () => {
    if (!location.hash.startsWith("#explore")) return;
    root.closest("details")?.setAttribute("open", "");
    if (!started) return start();
    if (data && fromAddress()) { build(); root.scrollIntoView(); toAddress(); }
  });
  document.addEventListener("click", (event) => {
    const mark = event.target.closest("[data-explore]");
    if (mark) location.hash = mark.dataset.explore;
  });
  if (location.hash.startsWith("#explore")) start();
  else new IntersectionObserver((entries, observer) => {
    if (entries.some((one) => one.isIntersecting)) { observer.disconnect(); start(); }
  }, { rootMargin: "800px" }).observe(root);
  return { ready, element, factors, held, label, plot, telling, worded };
})();
