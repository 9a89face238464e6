// Sorting, filtering, copying and the choice of colours. Every page is complete without this file.
"use strict";

(() => {
  const root = document.documentElement;
  const KEY = "solbench-theme";

  // A file from disk may have no storage.
  const stored = {
    get() { try { return localStorage.getItem(KEY); } catch { return null; } },
    set(value) { try { localStorage.setItem(KEY, value); } catch { /* not kept */ } },
  };
  const initial = stored.get();
  if (initial === "light" || initial === "dark") root.dataset.theme = initial;

  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;

  function theme(button) {
    const label = () => {
      button.textContent = dark() ? "Light" : "Dark";
      button.setAttribute("aria-label", dark() ? "Switch to light colours" : "Switch to dark colours");
    };
    button.hidden = false;
    button.addEventListener("click", () => {
      root.dataset.theme = dark() ? "light" : "dark";
      stored.set(root.dataset.theme);
      label();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", label);
    label();
  }

  // The clipboard needs a secure context; a hidden text field does without.
  async function toClipboard(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      const field = document.createElement("textarea");
      field.value = text;
      document.body.append(field);
      field.select();
      const done = document.execCommand("copy");
      field.remove();
      return done;
    }
  }

  function copying(button) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const done = await toClipboard(button.dataset.copy);
      button.textContent = done ? "copied" : "not copied";
      if (done) button.dataset.done = "";
      setTimeout(() => { button.textContent = "copy"; delete button.dataset.done; }, 1500);
    });
  }

  // What a cell sorts by; null (missing) stands last in either direction.
  function sortValue(row, column, numeric) {
    const cell = row.cells[column];
    const text = cell.dataset.sort ?? cell.textContent.trim();
    if (!numeric) return text || null;
    const number = parseFloat(text.replace(/\s/g, ""));
    return Number.isFinite(number) ? number : null;
  }

  const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

  function sortable(table) {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const numeric = head.dataset.type === "number";
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...body.rows].map((row) => [sortValue(row, column, numeric), row]);
        rows.sort(([a], [b]) => {
          if (a === null || b === null) return (a === null) - (b === null);
          const order = numeric ? a - b : collator.compare(a, b);
          return down ? -order : order;
        });
        body.append(...rows.map(([, row]) => row));
      });
    });
  }

  function filterable(table) {
    const rows = [...table.tBodies[0].rows];
    const noun = table.dataset.noun;
    const bar = document.createElement("div");
    bar.className = "filter";
    const label = document.createElement("label");
    label.append(`Filter ${noun} `);
    const field = document.createElement("input");
    field.type = "search";
    label.append(field);
    const count = document.createElement("output");
    const texts = rows.map((row) => row.textContent.toLowerCase());
    const apply = () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      rows.forEach((row, i) => {
        row.hidden = !words.every((word) => texts[i].includes(word));
        shown += !row.hidden;
      });
      count.textContent = `${shown} of ${rows.length} ${noun}`;
    };
    field.addEventListener("input", apply);
    bar.append(label, count);
    const box = table.closest(".scroll") ?? table;
    box.before(bar);
    apply();
  }

  // A link into a closed block opens it; printing opens all.
  function openTarget() {
    const target = document.getElementById(location.hash.slice(1));
    target?.closest("details")?.setAttribute("open", "");
  }

  addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll(".theme").forEach(theme);
    document.querySelectorAll("[data-copy]").forEach(copying);
    document.querySelectorAll("table[data-enhance]").forEach((table) => {
      const wanted = table.dataset.enhance.split(" ");
      if (wanted.includes("filter") && table.tBodies[0].rows.length > 5) filterable(table);
      if (wanted.includes("sort") && table.tBodies[0].rows.length > 1) sortable(table);
    });
    openTarget();
  });
  addEventListener("hashchange", openTarget);
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((block) => { block.open = true; }));
})();
