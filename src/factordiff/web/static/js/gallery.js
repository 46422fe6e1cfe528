// All tasks to choose from, each with a preview; typing narrows them down.

import { element } from "./grid.js";
import { thumbnail } from "./thumbnail.js";

export class Gallery {
  constructor(listing, onPick) {
    Object.assign(this, { listing, onPick });
    this.dialog = document.getElementById("gallery");
    this.find = document.getElementById("find");
    this.list = document.getElementById("gallery-list");
    this.find.addEventListener("input", () => this.#show());
  }

  open() {
    this.#show(); // anew: the palette may have changed
    this.dialog.showModal();
    this.find.focus();
  }

  #show() {
    const wanted = this.find.value.trim().toLowerCase();
    const found = this.listing.filter((one) => one.id.includes(wanted));
    this.list.replaceChildren(...found.map((one) => element("button", {
      type: "button", "aria-label": `Task ${one.id}`,
      onclick: () => { this.dialog.close(); this.onPick(one.id); },
    }, thumbnail(one.preview), one.id)));
    if (!found.length) this.list.append(element("p", { class: "hint" }, "No task has this in its id."));
  }
}
