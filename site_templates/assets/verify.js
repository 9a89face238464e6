// The page Verify: takes a bundle or files, shows what their hashes prove. Everything from a bundle is written as text.
"use strict";

addEventListener("DOMContentLoaded", () => {
  const tool = document.getElementById("tool");
  const { site, name: siteName } = tool.dataset;
  const PAGE = 500;
  const { shown } = Bundle;
  const { element } = Choose;

  class Cancelled extends Error {}
  let run = null; // What is under way, so that a second one ends the first.
  let last = null; // The last report, to compare with another root without reading again.

  const size = (bytes) => {
    for (const [unit, factor] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) if (bytes >= factor) return `${(bytes / factor).toPrecision(3)} ${unit}`;
    return `${bytes} B`;
  };
  const plural = (n, one) => `${n} ${one}${n === 1 ? "" : "s"}`;

  const expected = element("input", { type: "text", id: "expected", spellcheck: false, autocomplete: "off", placeholder: "blake3:…" });
  const cancel = element("button", { type: "button", className: "act", hidden: true }, "Cancel");
  const bar = element("progress", { max: 1, value: 0, hidden: true, ariaLabel: "Bytes hashed" });
  const status = element("output", { id: "verify-status" });
  const report = element("div", { id: "verify-report" });
  const drop = element("div", { className: "drop" },
    element("p", {}, "Drop a bundle here (an archive .zip or .tar, or its folder), or single files. They stay on this machine."),
    element("div", { className: "choices" }, Choose.chooser("Archive or files", { multiple: true }, start), Choose.chooser("Folder", { webkitdirectory: true }, start)),
    element("p", {}, element("label", { htmlFor: "expected" }, "The root that you expect, from somebody whom you trust (may stay empty)"), " ", expected));
  tool.append(drop, element("p", { className: "progress" }, bar, " ", status, " ", cancel), report);
  tool.hidden = false;

  cancel.addEventListener("click", () => { if (run) run.cancelled = true; });
  expected.addEventListener("input", () => { if (last) show(last); });
  Choose.dropping(drop, start, (words) => { status.textContent = words; });

  // Hashing takes turns with the page: after some milliseconds it waits until the page had its turn.
  function turns(own, total, began) {
    const channel = new MessageChannel();
    let done = 0, resumed = performance.now(), told = 0;
    return async (bytes) => {
      done += bytes;
      const now = performance.now();
      if (now - told > 200) {
        told = now;
        bar.value = total ? done / total : 1;
        const speed = (done / 1e3 / Math.max(now - began, 1)).toFixed(0);
        status.textContent = `${size(done)} of ${size(total)}, ${speed} MB/s`;
      }
      if (now - resumed > 12) {
        await new Promise((go) => {
          channel.port1.onmessage = go;
          channel.port2.postMessage(0);
        });
        resumed = performance.now();
      }
      if (own.cancelled) throw new Cancelled();
    };
  }

  async function start(files, whole) {
    if (run) run.cancelled = true;
    const own = { cancelled: false };
    run = own;
    last = null;
    report.replaceChildren();
    cancel.hidden = bar.hidden = false;
    bar.value = 0;
    status.textContent = "Reading";
    try {
      const found = await examine(files, whole, own);
      if (run === own) {
        last = found;
        status.textContent = found.speed;
        show(found);
      }
    } catch (error) {
      if (run === own) {
        if (error instanceof Cancelled) status.textContent = "Cancelled: nothing was decided.";
        else {
          status.textContent = "";
          const words = error instanceof Bundle.Refused ? error.message : `Could not be read: ${shown(error?.message ?? error)}`;
          report.append(verdict("bad", "Refused", words));
        }
      }
    } finally {
      if (run === own) {
        run = null;
        cancel.hidden = bar.hidden = true;
      }
    }
  }

  async function examine(files, whole, own) {
    const began = performance.now();
    let members = null, form = "folder", others = [];
    if (whole) members = Bundle.folder(files);
    else {
      for (const [path, file] of files) {
        const kind = await Bundle.formOf(file);
        if (kind && members) throw new Bundle.Refused("These are several archives. Choose one.");
        if (kind) [members, form] = [await Bundle.archive(file, kind), kind];
        else others.push([path, file]);
      }
    }
    if (members) others = [];
    const loose = members ? [] : Bundle.folder(others);
    const total = (members ?? loose).reduce((sum, member) => sum + member.size, 0);
    const step = turns(own, total, began);
    const found = { form, bundle: null, loose: [], others: members && !whole ? files.length - 1 : 0 };
    if (members) found.bundle = await Bundle.check(members, step);
    for (const { name, size: bytes, ...where } of loose) {
      const { blake3, sha256 } = await Bundle.hash({ name, size: bytes, ...where }, step);
      found.loose.push({ name, size: bytes, blake3, sha256: await sha256, faults: [] });
    }
    const seconds = (performance.now() - began) / 1e3;
    found.speed = `Done: this browser read and hashed ${size(total)} in ${seconds.toFixed(2)} s, ${(total / 1e6 / seconds).toPrecision(3)} MB/s.`;
    return found;
  }

  // -- what was found

  function verdict(state, words, text) {
    return element("p", { className: `verdict ${state}` }, element("strong", {}, words), " ", text);
  }
  const hash = (hex) => element("code", {}, hex);

  // The root that was typed: null for none, "" for something that is no root.
  function typed() {
    const text = expected.value.trim();
    if (!text) return null;
    const match = /^(?:blake3:)?([0-9a-f]{64})$/.exec(text);
    return match ? `blake3:${match[1]}` : "";
  }

  function show(found) {
    report.replaceChildren();
    if (found.bundle) showBundle(found, found.bundle);
    else showLoose(found.loose);
  }

  function showBundle(found, bundle) {
    const { root } = bundle;
    const byName = new Map();
    for (const { name, words } of bundle.faults) byName.set(name, [...(byName.get(name) ?? []), words]);
    const faults = [...byName];
    const lines = [];
    if (root === null) lines.push(verdict("bad", "No release", "There is no release.json in it, so nothing hangs together."));
    else if (faults.length) lines.push(verdict("bad", "Damaged", `Something is wrong with ${plural(faults.length, "file")}, listed below. Do not use it.`));
    else lines.push(verdict("good", "Whole", `Every file has its hash, and the root leads to all ${plural(bundle.objects, "object")} in it and to no other.`));
    if (root !== null) {
      const own = `This site shows ${shown(siteName)}, ${site}.`;
      if (root === site) lines.push(verdict("good", "This release", `Its root is the one that this site shows: ${root}.`));
      else lines.push(verdict("warn", "Another release", `Its root is ${root}, its name “${shown(bundle.name)}”. ${own}`));
      const wanted = typed();
      if (wanted === "") lines.push(verdict("warn", "Not compared", "What you expect is no root: it must be blake3: and 64 hex digits."));
      else if (wanted === null) lines.push(verdict("none", "Not compared", "You gave no root to expect. Whoever made this site could have made the bundle too."));
      else if (wanted === root) lines.push(verdict("good", "As expected", "Its root is the one that you gave."));
      else lines.push(verdict("bad", "Not as expected", `You gave ${wanted}, its root is ${root}.`));
    }
    const notes = [];
    if (root !== null && !bundle.complete) notes.push("The way from the root is broken, so what else is too much cannot be told.");
    if (bundle.withoutSha256) notes.push(`${plural(bundle.withoutSha256, "file")} beyond 64 MiB: BLAKE3 only, for browsers take SHA-256 of a whole file at once.`);
    if (found.form === "folder") notes.push("A browser does not show links, rights and empty folders; solbench verify does.");
    if (found.others) notes.push(`${plural(found.others, "other file")} beside the archive: not looked at.`);
    report.append(...lines, ...notes.map((words) => element("p", { className: "muted" }, words)));
    if (faults.length) {
      const list = element("ul", { className: "faults" });
      for (const [name, words] of faults.slice(0, PAGE)) list.append(element("li", {}, element("code", {}, shown(name)), ` ${words.join("; ")}`));
      report.append(element("h3", {}, `What is wrong (${faults.length})`), list);
      if (faults.length > PAGE) report.append(element("p", {}, `The first ${PAGE} of ${faults.length}.`));
    }
    report.append(files(bundle.files, (file) => file.faults.join("; ") || "as it should be"));
  }

  // Single files: is a name the hash of the bytes, or is it the root?
  function showLoose(loose) {
    const wanted = typed();
    const words = (file) => {
      const digest = `blake3:${file.blake3}`;
      if (digest === wanted) return "as expected";
      if (digest === site) return "the root object of this site’s release";
      if (/^[0-9a-f]{62,64}$/.test(file.name)) return file.blake3.endsWith(file.name) ? "its name is its hash" : "damaged: its name is not its hash";
      return wanted ? "not the hash that you gave" : "nothing to compare with";
    };
    for (const file of loose) file.faults = words(file).startsWith("damaged") ? ["damaged"] : [];
    report.append(verdict("none", "Single files", "Their hashes, without a release that they belong to."), files(loose, words));
  }

  function files(all, words) {
    const body = element("tbody");
    const more = element("button", { type: "button", className: "act" });
    let next = 0;
    // Faulty ones first, in pages: ten thousand rows at once would block the page.
    const order = [...all.filter((file) => file.faults.length), ...all.filter((file) => !file.faults.length)];
    const add = () => {
      for (const file of order.slice(next, next + PAGE)) {
        const state = element("td", { className: file.faults.length ? "state failed" : "" }, words(file));
        body.append(element("tr", {}, element("th", { scope: "row" }, shown(file.name)), element("td", { className: "num" }, size(file.size)), state,
          element("td", {}, hash(file.blake3)), element("td", {}, file.sha256 === null ? "not computed: beyond 64 MiB" : hash(file.sha256))));
      }
      next += PAGE;
      more.hidden = next >= order.length;
      more.textContent = `Show ${Math.min(PAGE, order.length - next)} more of ${order.length}`;
    };
    more.addEventListener("click", add);
    add();
    const heads = ["File", "Size", "Verdict", "BLAKE3", "SHA-256"].map((text) => element("th", { scope: "col", className: text === "Size" ? "num" : "" }, text));
    const table = element("table", { id: "verify-files" }, element("thead", {}, element("tr", {}, ...heads)), body);
    const box = element("div", { className: "scroll", tabIndex: 0, role: "group", ariaLabel: "Every file and its verdict" }, table);
    return element("div", {}, element("h3", {}, `Every file (${order.length})`), box, more);
  }
});
