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

  // Says to a screen reader what a sighted reader sees.
  function say(words) {
    let said = document.querySelector(".said");
    if (!said) {
      said = document.createElement("output");
      said.className = "said";
      document.body.append(said);
    }
    said.textContent = words;
  }

  function copying(button) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const done = await toClipboard(button.dataset.copy);
      button.textContent = done ? "copied" : "not copied";
      say(button.textContent);
      if (done) button.dataset.done = "";
      setTimeout(() => { button.textContent = "copy"; delete button.dataset.done; }, 1500);
    });
  }

  // -- tables: sorted, filtered, and both in the address behind "~": #anchor~results-1.sort=-8&results-1.filter=softmax

  const ONLY = {
    failed: "failed", audit: "in audit", too_narrow: "too narrow to score", not_attempted: "not measured",
    not_timed: "not timed", no_bound: "no bound",
  };
  const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
  const tables = [];

  // What a cell sorts by; null (missing) stands last in either direction.
  function sortValue(row, column, numeric) {
    const cell = row.cells[column];
    const text = cell.dataset.sort ?? cell.textContent.trim();
    if (!numeric) return text || null;
    const number = parseFloat(text.replace(/\s/g, ""));
    return Number.isFinite(number) ? number : null;
  }

  // As the renderer prints a score: three decimals of the shortest spelling, ties to even.
  function score(value) {
    if (value > 0 && value < 0.0005) return "<\u00a00.001";
    if (value === 0 || value === 1) return String(value);
    const [whole, part = ""] = String(value).split(".");
    const rest = part.slice(3);
    let thousandths = Number(whole + part.slice(0, 3).padEnd(3, "0"));
    if (rest > "5" || (rest === "5" && thousandths % 2)) thousandths += 1;
    return (thousandths / 1000).toFixed(3);
  }

  function enhance(table, number) {
    const wanted = table.dataset.enhance.split(" ");
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const heads = [...table.tHead.rows[0].cells];
    const name = table.dataset.table ?? `table-${number}`;
    const noun = table.dataset.noun ?? "rows";
    const state = { sort: 0, filter: "", only: "" };
    const sorts = wanted.includes("sort") && rows.length > 1;
    const filters = wanted.includes("filter") && rows.length > 5;
    if (!sorts && !filters) return;
    const bar = document.createElement("div");
    bar.className = "filter";
    const label = (words, field) => {
      const made = document.createElement("label");
      made.append(`${words} `, field);
      bar.append(made);
      return field;
    };

    let field = null, only = null, count = null;
    const texts = filters ? rows.map((row) => row.textContent.toLowerCase()) : [];
    if (filters) {
      field = label(`Filter ${noun}`, document.createElement("input"));
      field.type = "search";
      let pushed = false;
      field.addEventListener("focus", () => { pushed = false; });
      field.addEventListener("input", () => {
        state.filter = field.value;
        apply();
        remember(!pushed);
        pushed = true;
      });
      const kinds = Object.keys(ONLY).filter((kind) => body.querySelector(`.state.${kind}`));
      if (kinds.length) {
        only = label("Only", document.createElement("select"));
        only.append(new Option(`all ${noun}`, ""), ...kinds.map((kind) => new Option(ONLY[kind], kind)));
        only.addEventListener("change", () => {
          state.only = only.value;
          apply();
          remember(true);
        });
      }
      count = document.createElement("output");
      bar.append(count);
    }
    const reset = document.createElement("button");
    reset.type = "button";
    reset.className = "act";
    reset.textContent = "Reset";
    reset.setAttribute("aria-label", `Reset ${noun}: as the page was`);
    reset.addEventListener("click", () => {
      Object.assign(state, { sort: 0, filter: "", only: "" });
      (field ?? heads[0].querySelector("button")).focus();
      apply();
      remember(true);
      say(`${noun} as the page was`);
    });
    bar.append(reset);
    (table.closest(".scroll") ?? table).before(bar);

    if (sorts) heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        state.sort = state.sort === column + 1 ? -column - 1 : column + 1;
        apply();
        remember(true);
      });
    });

    // The last line of a table holds means over the rows that are shown; without a filter it stays as it was rendered.
    const means = [...table.querySelectorAll("tfoot [data-mean]")].map((cell) => ({
      cell, group: cell.parentNode.dataset.group, column: Number(cell.dataset.mean), kept: [...cell.children].map((part) => part.textContent),
    }));
    function summarise() {
      for (const { cell, group, column, kept } of means) {
        let [shown, of] = kept;
        if (state.filter || state.only) {
          const own = rows.filter((row) => !row.hidden && (group === undefined || row.dataset.groups.split(" ").includes(group)));
          const values = own.map((row) => sortValue(row, column, true)).filter((value) => value !== null);
          shown = values.length ? score(values.reduce((sum, value) => sum + value, 0) / values.length) : "—";
          of = `${values.length} of ${own.length}`;
        }
        cell.children[0].textContent = shown;
        cell.children[1].textContent = of;
      }
    }

    let placed = 0;
    function apply() {
      const column = Math.abs(state.sort) - 1, down = state.sort < 0;
      if (placed !== state.sort) {
        placed = state.sort;
        let order = rows;
        heads.forEach((head, i) => (i === column ? head.setAttribute("aria-sort", down ? "descending" : "ascending") : head.removeAttribute("aria-sort")));
        if (state.sort) {
          const numeric = heads[column].dataset.type === "number";
          order = rows.map((row) => [sortValue(row, column, numeric), row]).sort(([a], [b]) => {
            if (a === null || b === null) return (a === null) - (b === null);
            const found = numeric ? a - b : collator.compare(a, b);
            return down ? -found : found;
          }).map(([, row]) => row);
        }
        body.append(...order);
      }
      if (filters) {
        if (field.value !== state.filter) field.value = state.filter;
        if (only) only.value = state.only;
        const words = state.filter.toLowerCase().split(/\s+/).filter(Boolean);
        let shown = 0;
        rows.forEach((row, i) => {
          row.hidden = !words.every((word) => texts[i].includes(word)) || Boolean(state.only && !row.querySelector(`.state.${state.only}`));
          shown += !row.hidden;
        });
        count.textContent = `${shown} of ${rows.length} ${noun}`;
        summarise();
      }
      reset.hidden = !state.sort && !state.filter && !state.only;
    }

    tables.push({
      read(found) {
        const sort = Number(found.get(`${name}.sort`));
        state.sort = sorts && Number.isInteger(sort) && Math.abs(sort) <= heads.length ? sort : 0;
        state.filter = filters ? found.get(`${name}.filter`) ?? "" : "";
        const kind = found.get(`${name}.only`);
        state.only = only && [...only.options].some((option) => option.value === kind) ? kind : "";
        apply();
      },
      write(made) {
        for (const [key, value] of Object.entries(state)) if (value) made.set(`${name}.${key}`, value);
      },
    });
  }

  const inAddress = () => {
    const [anchor, ...rest] = location.hash.slice(1).split("~");
    return { anchor, rest: rest.join("~") };
  };

  // Puts the state of all tables into the address, as a new step back where `step`.
  function remember(step) {
    const made = new URLSearchParams();
    tables.forEach((table) => table.write(made));
    const packed = String(made);
    const { anchor } = inAddress();
    const fragment = anchor + (packed && `~${packed}`);
    const address = location.href.split("#", 1)[0] + (fragment && `#${fragment}`);
    if (address === location.href && history.state) return;
    try {
      history[step ? "pushState" : "replaceState"]({ tables: true }, "", address);
    } catch { /* too often, or not from disk: the address stays as it was */ }
  }

  // A new step that only goes to an anchor keeps the tables as they are; any other address says how they are.
  function recall() {
    if (history.state === null && !inAddress().rest && tables.length) {
      remember(false);
      return;
    }
    const found = new URLSearchParams(inAddress().rest);
    tables.forEach((table) => table.read(found));
  }

  // A link into a closed block opens it; printing opens all.
  function openTarget() {
    const { anchor, rest } = inAddress();
    const target = document.getElementById(anchor);
    target?.closest("details")?.setAttribute("open", "");
    // With a state behind it the browser does not find the anchor itself.
    if (rest) target?.scrollIntoView();
  }

  addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll(".theme").forEach(theme);
    document.querySelectorAll("[data-copy]").forEach(copying);
    document.querySelectorAll("table[data-enhance]").forEach(enhance);
    const found = new URLSearchParams(inAddress().rest);
    tables.forEach((table) => table.read(found));
    if (tables.length) remember(false);
    openTarget();
  });
  addEventListener("popstate", recall);
  addEventListener("hashchange", openTarget);
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((block) => { block.open = true; }));
})();
