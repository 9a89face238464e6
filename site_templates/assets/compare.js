// The page Compare: takes two bundles and shows what differs. It reads, it proves nothing: that is what Verify is for.
// Everything from a bundle is written as text.
"use strict";

addEventListener("DOMContentLoaded", () => {
  const SHOWN = 200; // So many rows of a table, and so many names of a list.
  const { element } = Choose;
  const { Refused, shown } = Bundle;
  const tool = document.getElementById("tool");
  const report = element("div", { id: "compare-report" });
  const sides = ["Earlier release", "Later release"].map(side);
  let run = 0; // What is under way, so that another choice ends it.

  // A box for one of the two; its `release` stays null until a bundle was read.
  function side(title) {
    const own = { title, release: null, said: element("output", {}, "nothing chosen"), turn: 0 };
    const take = async (files, whole) => {
      const turn = own.turn += 1;
      run += 1;
      own.release = null;
      report.replaceChildren();
      own.said.textContent = "Reading";
      let words = [];
      try {
        const found = await release(await members(files, whole));
        if (turn === own.turn) own.release = found;
        words = [`${shown(found.name)}, root `, element("code", {}, found.root)];
      } catch (error) {
        words = [told(error)];
      }
      if (turn !== own.turn) return;
      own.said.replaceChildren(...words);
      if (sides.every((one) => one.release)) compare(run += 1);
    };
    const fields = [Choose.chooser("Archive", {}, take), Choose.chooser("Folder", { webkitdirectory: true }, take)];
    own.box = element("fieldset", { className: "drop" }, element("legend", {}, title),
      element("p", {}, "Drop a bundle here (an archive .zip or .tar, or its folder)."), element("div", { className: "choices" }, ...fields), element("p", {}, own.said));
    Choose.dropping(own.box, take, (words) => { own.said.textContent = words; });
    return own;
  }
  tool.append(element("div", { className: "split" }, ...sides.map((one) => one.box)), report);
  tool.hidden = false;

  const told = (error) => (error instanceof Refused ? error.message : `Could not be read: ${shown(error?.message ?? error)}`);

  // -- reading

  async function members(files, whole) {
    if (whole) return Bundle.folder(files);
    if (files.length !== 1) throw new Refused("Choose one archive, or a folder.");
    const form = await Bundle.formOf(files[0][1]);
    if (!form) throw new Refused(`${shown(files[0][0])} is neither a .zip nor a .tar archive.`);
    return Bundle.archive(files[0][1], form);
  }

  // A member with its hash, its bytes parsed where they are JSON.
  async function read(member) {
    const { blake3, bytes } = await Bundle.hash(member, async () => {});
    const value = bytes ? Bundle.parsed(bytes) : undefined;
    return { digest: `blake3:${blake3}`, value: value !== null && typeof value === "object" ? value : undefined };
  }

  // Name, root and sections of a bundle; `load(reference)` reads one of its objects, or says why not.
  async function release(all) {
    const byName = new Map(all.map((member) => [member.name, member]));
    const load = async (reference) => {
      const digest = String(reference?.digest), member = byName.get(Bundle.memberOf(digest));
      if (!member) throw new Refused(`${shown(digest)} is not in the bundle. Verify says what else is wrong with it.`);
      const found = await read(member);
      if (found.digest !== digest) throw new Refused(`${shown(digest)} is damaged: its bytes hash to ${found.digest}.`);
      if (!found.value) throw new Refused(`${shown(digest)} is no JSON object.`);
      return found.value;
    };
    if (!byName.has("release.json")) throw new Refused("There is no release.json in it, so it is no bundle.");
    const { digest, value } = await read(byName.get("release.json"));
    if (!value) throw new Refused("Its release.json is no JSON object.");
    const sections = new Map();
    for (const [stage, reference] of Object.entries(value.sections ?? {})) {
      sections.set(stage, new Map(Object.entries((await load(reference)).entries ?? {})));
    }
    return { root: digest, name: String(value.name), sections, load };
  }

  // -- comparing

  // What differs between two sections, names in order.
  function difference(a, b) {
    const names = [...new Set([...a.keys(), ...b.keys()])].sort();
    const both = names.filter((name) => a.has(name) && b.has(name));
    const changed = both.filter((name) => a.get(name)?.digest !== b.get(name)?.digest);
    return { added: names.filter((name) => !a.has(name)), removed: names.filter((name) => !b.has(name)), changed, same: both.length - changed.length };
  }

  // What of an artifact is set beside its earlier self, by kind: head, value, whether seconds.
  const NUMBERS = {
    entry: [["S", (value) => value.s, false]],
    score: [["S", (value) => value.s, false], ["T_k", (value) => value.t_k?.point_s, true], ["T_SOL", (value) => value.t_sol_s, true]],
    bound: [["T_SOL", (value) => value.result?.t_sol_s, true]],
  };

  async function compare(own) {
    const [a, b] = sides.map((one) => one.release);
    const found = new Map([...new Set([...a.sections.keys(), ...b.sections.keys()])].sort()
      .map((stage) => [stage, difference(a.sections.get(stage) ?? new Map(), b.sections.get(stage) ?? new Map())]));
    const made = [a.root === b.root ? verdict("good", "The same release", "Both have one root, so nothing differs.") : verdict("none", "Two releases", "Their roots differ."),
      verdict("warn", "Not verified", "This is what both say. Whether a bundle is whole, and whether its numbers follow from the measurements, tell ", element("a", { href: tool.dataset.verify }, "Verify"), " and solbench verify.")];
    made.push(table("Sections", ["Section", "Added", "Removed", "Changed", "Same"], [...found].map(([stage, one]) => [shown(stage), one.added.length, one.removed.length, one.changed.length, one.same])));
    for (const [kind, stage] of [["entry", "scores"], ["score", "scores"], ["bound", "bounds"]]) {
      const title = { entry: "Entries", score: "Scores", bound: "Bounds" }[kind];
      const of = (release, name) => release.sections.get(stage)?.get(name);
      const names = (found.get(stage)?.changed ?? []).filter((name) => of(a, name)?.kind === kind && of(b, name)?.kind === kind);
      if (!names.length) continue;
      const rows = [];
      for (const name of names.slice(0, SHOWN)) {
        if (rows.length % 20 === 0) {
          report.textContent = `${title}: ${rows.length} of ${Math.min(names.length, SHOWN)} read`;
          await new Promise((go) => { setTimeout(go); });
          if (own !== run) return;
        }
        rows.push([shown(name), ...await numbers(kind, a, of(a, name), b, of(b, name))]);
      }
      const heads = NUMBERS[kind].flatMap(([head]) => [`${head}, earlier`, `${head}, later`]);
      made.push(table(`${title} that changed (${cut(rows.length, names.length)})`, ["Artifact", ...heads], rows));
    }
    for (const [stage, one] of found) for (const word of ["added", "removed", "changed"]) if (one[word].length) made.push(list(`${shown(stage)}: ${one[word].length} ${word}`, one[word]));
    if (own === run) report.replaceChildren(...made);
  }

  // The numbers of one artifact, earlier and later; one that cannot be read says why in their place.
  async function numbers(kind, a, old, b, young) {
    const values = [];
    for (const [from, reference] of [[a, old], [b, young]]) {
      try {
        values.push(await from.load(reference));
      } catch (error) {
        values.push(told(error));
      }
    }
    return NUMBERS[kind].flatMap(([, value, seconds]) => values.map((one) => (typeof one === "string" ? one : number(value(one), seconds))));
  }

  function number(value, seconds) {
    if (typeof value !== "number") return "none";
    if (!seconds) return element("span", { title: String(value) }, value.toFixed(3));
    const rounded = Number(value.toPrecision(3));
    const [unit, factor] = [["s", 1], ["ms", 1e-3], ["µs", 1e-6]].find(([, size]) => rounded >= size) ?? ["ns", 1e-9];
    return element("span", { title: `${value} s` }, `${(rounded / factor).toPrecision(3)}\u00a0${unit}`);
  }

  // -- what was found

  const verdict = (state, words, ...text) => element("p", { className: `verdict ${state}` }, element("strong", {}, words), " ", ...text);
  const cut = (some, all) => (some < all ? `${some} of ${all}; solbench release diff shows all` : String(all));

  function table(title, heads, rows) {
    const cell = (value, i) => (i === 0 ? element("th", { scope: "row" }, value) : element("td", { className: "num" }, typeof value === "number" ? String(value) : value));
    const head = element("tr", {}, ...heads.map((words, i) => element("th", { scope: "col", className: i ? "num" : "" }, words)));
    const body = rows.map((row) => element("tr", {}, ...row.map(cell)));
    const made = element("table", { className: "named" }, element("thead", {}, head), element("tbody", {}, ...body));
    return element("div", {}, element("h3", {}, title), element("div", { className: "scroll", tabIndex: 0, role: "group", ariaLabel: title }, made));
  }

  function list(title, names) {
    const items = names.slice(0, SHOWN).map((name) => element("li", {}, element("code", {}, shown(name))));
    const rest = names.length > SHOWN ? [element("p", {}, `Shown: ${cut(SHOWN, names.length)}.`)] : [];
    return element("details", {}, element("summary", {}, title), element("ul", { className: "names" }, ...items), ...rest);
  }
});
