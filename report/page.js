"use strict";
(() => {
  const filter = (table) => {
    const rows = [...table.tBodies[0].rows];
    if (rows.length < 8) return;
    const bar = document.createElement("div");
    bar.className = "filter";
    const text = document.createElement("input");
    text.type = "search";
    text.placeholder = "Filter rows";
    text.setAttribute("aria-label", "Filter rows");
    const status = document.createElement("span");
    status.setAttribute("role", "status");
    bar.append(text);
    const outcomes = new Map();
    for (const row of rows) {
      const name = row.dataset.outcome;
      if (!name || outcomes.has(name)) continue;
      const label = document.createElement("label");
      const box = document.createElement("input");
      box.type = "checkbox";
      box.checked = true;
      label.append(box, " " + name);
      outcomes.set(name, box);
      bar.append(label);
    }
    bar.append(status);
    const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
    const apply = () => {
      const wanted = text.value.toLowerCase();
      let shown = 0;
      for (const row of rows) {
        const box = outcomes.get(row.dataset.outcome);
        row.hidden = !texts.get(row).includes(wanted) || (box !== undefined && !box.checked);
        shown += row.hidden ? 0 : 1;
      }
      status.textContent = shown === rows.length ? "" : shown + " of " + rows.length + " rows";
    };
    bar.addEventListener("input", apply);
    table.parentElement.before(bar);
  };
  const sortable = (table) => {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const key = (row) => row.cells[column].dataset.sort ?? row.cells[column].textContent.trim();
        const compare = (a, b) => {
          const x = key(a), y = key(b), n = Number(x) - Number(y);
          return x !== "" && y !== "" && !Number.isNaN(n) ? n : x.localeCompare(y);
        };
        const rows = [...table.tBodies[0].rows].sort((a, b) => (up ? compare(a, b) : compare(b, a)));
        table.tBodies[0].append(...rows);
      });
    });
  };
  const reveal = () => {
    let at = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (const target = at; at; at = at.parentElement) {
      if (at instanceof HTMLDetailsElement) at.open = true;
      if (at.parentElement === null) target.scrollIntoView();
    }
  };
  for (const table of document.querySelectorAll("table.rows")) filter(table);
  for (const table of document.querySelectorAll("table.sortable")) sortable(table);
  addEventListener("hashchange", reveal);
  reveal();
})();
