// How a page takes files: fields to choose them, a box to drop them into. For the pages Verify and Compare.
"use strict";

const Choose = (() => {
  function element(tag, fields = {}, ...children) {
    const made = document.createElement(tag);
    for (const [key, value] of Object.entries(fields)) {
      if (key in made) made[key] = value;
      else made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  }

  // A field for files; `take(files, whole)` gets them as [path, File], `whole` where they are all of a folder.
  function chooser(words, fields, take) {
    const input = element("input", { type: "file", ...fields });
    input.addEventListener("change", () => {
      const files = [...input.files].map((file) => [file.webkitRelativePath || file.name, file]);
      input.value = "";
      if (files.length) take(files, Boolean(fields.webkitdirectory));
    });
    return element("label", {}, `${words} `, input);
  }

  // Lets files and folders be dropped into `box`; `say(words)` tells what goes on.
  function dropping(box, take, say) {
    for (const kind of ["dragenter", "dragover"]) {
      box.addEventListener(kind, (event) => {
        event.preventDefault();
        box.dataset.over = "";
      });
    }
    box.addEventListener("dragleave", () => { delete box.dataset.over; });
    box.addEventListener("drop", async (event) => {
      event.preventDefault();
      delete box.dataset.over;
      // Both are asked for now: after the event they are gone. Chromium opens an entry on pages from a server only.
      const items = [...event.dataTransfer.items].filter((item) => item.kind === "file");
      const handles = items.map((item) => item.getAsFileSystemHandle?.());
      const entries = items.map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
      const files = [...event.dataTransfer.files].map((file) => [file.name, file]);
      if (!entries.some((entry) => entry.isDirectory)) {
        if (files.length) take(files, false);
        return;
      }
      say("Listing");
      try {
        const whole = handles.some(Boolean) ? (await Promise.all(handles)).map((handle) => within(handle, handle.name)) : entries.map(below);
        take((await Promise.all(whole)).flat(), true);
      } catch {
        say("This browser does not hand over a dropped folder to a page from disk. Choose it with the button Folder.");
      }
    });
  }

  // Files below a dropped folder as [path, File], from a handle or from an entry.
  async function within(handle, path) {
    if (handle.kind === "file") return [[path, await handle.getFile()]];
    const found = [];
    for await (const one of handle.values()) found.push(...await within(one, `${path}/${one.name}`));
    return found;
  }

  async function below(entry) {
    const path = entry.fullPath.replace(/^\//, "");
    if (entry.isFile) return [[path, await new Promise((done, failed) => { entry.file(done, failed); })]];
    const reader = entry.createReader(), found = [];
    for (;;) {
      const some = await new Promise((done, failed) => { reader.readEntries(done, failed); });
      if (!some.length) return (await Promise.all(found.map(below))).flat();
      found.push(...some);
    }
  }

  return { element, chooser, dropping };
})();
