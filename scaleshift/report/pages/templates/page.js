"use strict";
// Tables that are whole without this become sortable, searchable and downloadable with it.
const make = (tag, more = {}) => Object.assign(document.createElement(tag), more);
const byName = new Intl.Collator(undefined, {numeric: true}).compare;

function sortable(table, announce) {
  const body = table.tBodies[0], original = [...body.rows], heads = [...table.tHead.rows[0].cells];
  const key = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
  };
  heads.forEach((head, column) => {
    if (head.classList.contains("shares")) return;
    const button = make("button", {type: "button", textContent: head.textContent});
    const numbers = !head.classList.contains("text");
    // Numbers begin with the largest, names with the first; the third click brings the order of the file back.
    const ways = numbers ? ["descending", "ascending", "none"] : ["ascending", "descending", "none"];
    button.addEventListener("click", () => {
      const way = ways[(ways.indexOf(head.getAttribute("aria-sort") ?? "none") + 1) % 3];
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      let rows = original;
      if (way !== "none") {
        head.setAttribute("aria-sort", way);
        const sign = way === "ascending" ? 1 : -1;
        const missing = (value) => numbers && typeof value !== "number";
        rows = original.map((row) => [key(row, column), row]).sort(([a], [b]) =>
          missing(a) || missing(b) ? missing(a) - missing(b)
            : sign * (numbers ? a - b : byName(a, b))).map(([, row]) => row);
      }
      body.append(...rows);
      announce(way === "none" ? "in the order of the file" : `sorted by ${button.textContent}, ${way}`);
    });
    head.replaceChildren(button);
  });
}

function searchable(table, tools, announce) {
  const rows = [...table.tBodies[0].rows];
  if (rows.length < 2) return;
  const search = make("input", {type: "search", placeholder: "Filter rows"});
  search.setAttribute("aria-label", `Filter rows: ${table.caption.textContent}`);
  const flagged = make("input", {type: "checkbox"}), texts = rows.map((row) => row.textContent.toLowerCase());
  const show = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    rows.forEach((row, i) => {
      row.hidden = (flagged.checked && !row.classList.contains("flagged"))
        || !words.every((word) => texts[i].includes(word));
      shown += !row.hidden;
    });
    announce(`${shown} of ${rows.length} rows`);
  };
  search.addEventListener("input", show);
  flagged.addEventListener("change", show);
  tools.append(search);
  if (rows.some((row) => row.classList.contains("flagged"))) {
    const label = make("label");
    label.append(flagged, " flagged only");
    tools.append(label);
  }
}

function downloadable(grid, tools) {
  const packed = grid.querySelector("script[data-name]");
  if (!packed || !("DecompressionStream" in window)) return;
  const button = make("button", {type: "button", textContent: `Download ${packed.dataset.name}`});
  button.addEventListener("click", async () => {
    const bytes = Uint8Array.from(atob(packed.textContent), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const file = new Blob([await new Response(stream).arrayBuffer()], {type: "text/csv;charset=utf-8"});
    const link = make("a", {href: URL.createObjectURL(file), download: packed.dataset.name});
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  });
  tools.append(button);
}

for (const grid of document.querySelectorAll("div.grid")) {
  const table = grid.querySelector("table"), tools = grid.querySelector(".tools");
  const said = make("output");
  said.setAttribute("aria-live", "polite");
  const announce = (text) => { said.textContent = text; };
  searchable(table, tools, announce);
  sortable(table, announce);
  downloadable(grid, tools);
  tools.append(said);
}

// What is folded is printed too.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => { d.open = true; }));
