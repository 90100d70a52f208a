(function () {
  "use strict";
  const VIEW = 250; // least width of one of several views, with its axis, in pixels
  const AXIS = 75; // what an axis and its title take of that
  const ENTRY = 150; // width of an entry of a legend
  const LETTER = 6.6; // usual width of a letter beside an axis
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const config = read("chart.config");

  // Several views: as many side by side as there is room for, each with its share of the width.
  function fit(spec, width) {
    if (spec.hconcat) {
      spec.concat = spec.hconcat;
      spec.columns = spec.concat.length;
      delete spec.hconcat;
    }
    const encoded = (spec.encoding || {}).facet;
    const holder = encoded && !encoded.row && !encoded.column ? encoded : spec;
    const views = spec.concat || spec.vconcat || (spec.spec ? [spec.spec] : encoded ? [spec] : []);
    if (!views.length) return spec;
    const grid = spec.facet && (spec.facet.row || spec.facet.column);
    let columns = spec.vconcat ? 1 : holder.columns || (spec.concat ? views.length : 3);
    if (!grid) {
      columns = Math.max(1, Math.min(columns, Math.floor(width / VIEW)));
      if (!spec.vconcat) holder.columns = columns;
      const share = Math.max(120, Math.floor(width / columns) - AXIS);
      for (const view of views) {
        if (typeof view.width !== "object") view.width = share;
      }
    }
    return spec;
  }

  // Long names lose their middle: they often differ at their end.
  function shorten(part, limit) {
    if (!part || typeof part !== "object") return;
    if (part.type === "nominal" && part.axis) {
      const width = Math.min(part.axis.labelLimit || limit, limit);
      const room = Math.max(6, Math.floor(width / LETTER));
      part.axis.labelLimit = 1.3 * width; // wide letters may take more
      const end = Math.floor(room / 2);
      part.axis.labelExpr =
        `length(datum.label) > ${room} ? slice(datum.label, 0, ${room - end - 1}) + '…' + ` +
        `slice(datum.label, -${end}) : datum.label`;
    }
    for (const [name, each] of Object.entries(part)) if (name !== "values") shorten(each, limit);
  }

  async function draw(chart) {
    // In a closed fold a chart is drawn as wide as the page, so that it is there when the fold opens, or on paper.
    const visible = chart.place.clientWidth;
    const width = visible || document.querySelector("main").clientWidth;
    if (!width || width === chart.width) return;
    chart.width = width;
    if (chart.drawn) chart.drawn.finalize();
    const axis = { ...config.axis, labelLimit: Math.min(config.axis.labelLimit, Math.round(width * 0.3)) };
    const legend = { ...config.legend, columns: Math.max(1, Math.floor(width / ENTRY)), labelLimit: ENTRY - 30 };
    try {
      const spec = fit(read(chart.place.dataset.spec), width);
      shorten(spec, axis.labelLimit);
      if (!visible && spec.width === "container") spec.width = width;
      chart.drawn = await vegaEmbed(chart.place, spec, {
        mode: "vega-lite",
        actions: false,
        renderer: "svg",
        ast: true, // formulas are interpreted: the page may not make code of text
        defaultStyle: false,
        config: { ...config, axis, legend },
      });
    } catch (error) {
      chart.drawn = null;
      chart.place.textContent = "This chart could not be drawn: " + error.message;
      console.error(error);
    }
  }

  const charts = new Map();
  for (const place of document.querySelectorAll(".chart")) {
    charts.set(place, { place, width: 0, drawn: null, turn: Promise.resolve() });
  }
  // One drawing after the other: the window may change while a chart is being drawn.
  const redraw = (chart) => (chart.turn = chart.turn.then(() => draw(chart)));
  let waiting = 0;
  new ResizeObserver(() => {
    clearTimeout(waiting);
    waiting = setTimeout(() => charts.forEach(redraw), 150);
  }).observe(document.body);
  charts.forEach(redraw);

  // Paper has nothing to click on.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const each of closed) each.open = true;
  });
  addEventListener("afterprint", () => {
    for (const each of closed) each.open = false;
  });
})();
