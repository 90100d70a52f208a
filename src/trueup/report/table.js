(function () {
  "use strict";
  const order = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
  const value = (text) => {
    const found = parseFloat(text.replace(/,/g, "").replace("∞", "Infinity"));
    return Number.isNaN(found) ? null : found;
  };

  // Names whose middle is left out are found by the whole name too.
  const words = (row) =>
    [row.textContent, ...[...row.querySelectorAll("[title]")].map((each) => each.title)].join(" ").toLowerCase();

  for (const box of document.querySelectorAll(".data")) {
    const table = box.querySelector("table");
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row, at) => ({ row, at, text: words(row) }));
    const heads = [...table.tHead.rows[0].cells];

    // Searching: rows that have all the words.
    const bar = document.createElement("div");
    bar.className = "tools";
    const label = document.createElement("label");
    label.textContent = "Find " + box.dataset.search + " ";
    const input = document.createElement("input");
    input.type = "search";
    input.autocomplete = "off";
    input.spellcheck = false;
    label.append(input);
    const count = document.createElement("span");
    count.setAttribute("role", "status");
    const say = (shown) => {
      const all = rows.length.toLocaleString("en");
      count.textContent = shown === rows.length ? all + " rows" : shown.toLocaleString("en") + " of " + all + " rows";
    };
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const each of rows) {
        const found = words.every((word) => each.text.includes(word));
        each.row.hidden = !found;
        shown += found;
      }
      say(shown);
    });
    bar.append(label, count);
    box.prepend(bar);
    say(rows.length);

    // Sorting: numbers begin with the largest, words with the first; what is unknown comes last either way.
    heads.forEach((head, column) => {
      const numeric = head.classList.contains("number");
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      button.title = "Sort by " + head.textContent;
      head.textContent = "";
      head.append(button);
      button.addEventListener("click", () => {
        const now = head.getAttribute("aria-sort");
        const down = now ? now === "ascending" : numeric;
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const sign = down ? -1 : 1;
        const keyed = rows.map((each) => {
          const text = each.row.cells[column].textContent;
          return { ...each, key: numeric ? value(text) : text };
        });
        keyed.sort((a, b) => {
          if (a.key === null || b.key === null) return (a.key === null) - (b.key === null) || a.at - b.at;
          const by = numeric ? Math.sign(a.key - b.key) || 0 : order.compare(a.key, b.key);
          return sign * by || a.at - b.at;
        });
        body.append(...keyed.map((each) => each.row));
      });
    });
  }
})();
