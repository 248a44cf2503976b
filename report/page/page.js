"use strict";
(() => {
  const chosen = new Map(); // what was chosen for each table: it holds for the table that takes its place, too
  const choice = (table) => {
    const section = table.closest("section");
    const key = section.id + "/" + [...section.querySelectorAll("table")].indexOf(table);
    if (!chosen.has(key)) chosen.set(key, { text: "", off: new Set(), column: -1, up: true });
    return chosen.get(key);
  };
  const filter = (table) => {
    const rows = [...table.tBodies[0].rows];
    if (rows.length < 8) return;
    const mine = choice(table);
    const bar = document.createElement("div");
    bar.className = "filter";
    bar.setAttribute("role", "group");
    bar.setAttribute("aria-label", "Filter");
    const text = document.createElement("input");
    text.type = "search";
    text.value = mine.text;
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
      box.checked = !mine.off.has(name);
      label.append(box, " " + name);
      outcomes.set(name, box);
      bar.append(label);
    }
    bar.append(status);
    const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
    const apply = () => {
      const wanted = text.value.toLowerCase();
      mine.text = text.value;
      for (const [name, box] of outcomes) mine.off[box.checked ? "delete" : "add"](name);
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
    apply();
  };
  const sortable = (table) => {
    const mine = choice(table);
    const sort = () => {
      const heads = table.tHead.rows[0].cells, head = heads[mine.column];
      if (!head) return;
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", mine.up ? "ascending" : "descending");
      const key = (row) => row.cells[mine.column].dataset.sort ?? row.cells[mine.column].textContent.trim();
      const compare = (a, b) => {
        const x = key(a), y = key(b), n = Number(x) - Number(y);
        return x !== "" && y !== "" && !Number.isNaN(n) ? n : x.localeCompare(y);
      };
      const rows = [...table.tBodies[0].rows].sort((a, b) => (mine.up ? compare(a, b) : compare(b, a)));
      table.tBodies[0].append(...rows);
    };
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        mine.up = head.getAttribute("aria-sort") !== "ascending";
        mine.column = column;
        sort();
      });
    });
    sort();
  };
  const reveal = () => {
    let at = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (const target = at; at; at = at.parentElement) {
      if (at instanceof HTMLDetailsElement) at.open = true;
      if (at.parentElement === null) target.scrollIntoView();
    }
  };
  const enhance = (part) => {
    for (const table of part.querySelectorAll("table.rows:not(.live)")) filter(table);
    for (const table of part.querySelectorAll("table.sortable")) sortable(table);
  };
  enhance(document);
  document.addEventListener("replaced", (event) => enhance(event.detail));
  addEventListener("hashchange", reveal);
  reveal();
})();
