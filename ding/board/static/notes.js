// Notes and tags of a run; they can be changed where `ding board --write` serves the page.

import { h, setText, tagChips } from "./dom.js";
import { saveNotes } from "./data.js";

export class Notes {
  constructor(id, saved) {
    this.id = id;
    this.saved = saved;
    this.view = h("div", { class: "notes", hidden: true });
    this.tags = h("input", { type: "text", "aria-label": "Tags", placeholder: "tags, separated by spaces" });
    this.text = h("textarea", { rows: 4, "aria-label": "Notes", placeholder: "notes" });
    this.problem = h("p", { class: "alert", hidden: true });
    this.form = h("form", { class: "notes", hidden: true, onsubmit: (event) => this.save(event) }, this.tags, this.text, this.problem,
      h("div", {}, h("button", { class: "primary" }, "Save"), h("button", { type: "button", class: "quiet", onclick: () => this.edit(false) }, "Cancel")));
    this.element = h("div", {}, this.view, this.form);
  }

  update({ tags, notes }, isWritable) {
    const shown = JSON.stringify([tags, notes, isWritable]);
    if (shown === this.shown) return;
    this.shown = shown;
    this.now = { tags, notes };
    const words = tags.length || notes ? "Edit tags and notes" : "Add tags and notes";
    this.view.replaceChildren(tagChips(tags), notes ? h("p", {}, notes) : "",
      isWritable ? h("button", { type: "button", class: "quiet", onclick: () => this.edit(true) }, words) : "");
    this.edit(false);
  }

  edit(isOpen) {
    this.form.hidden = !isOpen;
    this.view.hidden = isOpen || !this.view.textContent;
    this.problem.hidden = true;
    if (!isOpen) return;
    this.tags.value = this.now.tags.join(" ");
    this.text.value = this.now.notes;
    this.tags.focus();
  }

  async save(event) {
    event.preventDefault();
    try {
      const tags = this.tags.value.split(/[\s,]+/).filter(Boolean);
      const notes = await saveNotes(this.id, { tags, notes: this.text.value });
      this.saved(notes);
      this.update(notes, true);
      this.edit(false);
    } catch (error) {
      this.problem.hidden = false;
      setText(this.problem, error.message);
    }
  }
}
