// The choices of one lane: who, and how. Everything else is folded away; what there is to set comes from the server.

import * as api from "./api.js";
import { element } from "./grid.js";

// In plain words; a method that is not among them speaks for itself.
const METHODS = {
  routing: "Each cell goes to the expert with the largest margin there. The paper’s method.",
  "soft-routing": "Every expert speaks for every cell, weighted by its margin.",
  evidence: "Who has predicted well what lies around a cell speaks for it.",
  learned: "A small network, fitted on other instances, says how much each expert counts at each cell.",
  single: "One expert alone.",
  mixture: "The average of the experts’ distributions, cell by cell.",
  "drawn-expert": "For each cell and step one expert is drawn and speaks.",
  product: "The product of the experts’ distributions, cell by cell.",
  "geometric-mean": "The product with exponents that add up to one.",
  superdiff: "One expert per step for the whole grid, by the density of what is drawn so far.",
  "superdiff-and": "Weights that keep all experts’ densities equal.",
  fkc: "Particles drawn from the product and reweighted (Feynman–Kac).",
  rne: "Particles drawn from the mixture and reweighted.",
  views: "Where from the occupancy expert, which color from the other.",
  hex: "Several reveal orders, from all cells at once to left to right; the most frequent whole answer wins.",
  tie: "Each expert fills its own grid; after every step all go on from the surest one.",
  vote: "Each expert answers alone, several times; every cell takes the majority.",
};
const RULES = {
  exact: "one cell a pass, surest first", fast: "fast, as in `solve`", confidence: "surest first, in T steps",
  margin: "all above a margin", entropy: "as many as entropy allows",
  product: "while all are likely right", frechet: "… whatever depends on what", ancestral: "at random, in T steps",
};
const NUMBERS = { confidence: ["Steps T", 25], ancestral: ["Steps T", 25], margin: ["Margin above", 0.995], product: ["Chance", 0.995], frechet: ["Chance", 0.995], entropy: ["Nats", 0.005] };
const FACTORS = { pixel: "each cell", row: "rows", column: "columns", "block:2x2": "blocks of 2 × 2", "block:3x3": "blocks of 3 × 3", "block:5x5": "blocks of 5 × 5", component: "objects of the input", whole: "the whole grid" };
const IN_A_LINE = { pixel: "each character", whole: "the whole text" };
const OVERLAPPING = { "near:1": "neighbours within 1", "near:2": "neighbours within 2", "near:3": "neighbours within 3" };

const fits = new Map(); // experts -> {method: reason | null}, as the server says
async function fitting(experts) {
  const key = experts.join(",");
  if (!fits.has(key)) fits.set(key, await api.methods(experts));
  return fits.get(key);
}

// "views" takes two experts, …: without its name and without what it got.
const shortly = (reason) => reason.replace(/^method: '[\w-]+' /, "").replace(/, got .*$/, "");
const sayNumbers = (options) => Object.entries(options).map(([name, value]) => `${name} ${Array.isArray(value) ? value.join(", ") : value}`).join("; ");
export const isTeam = (team, settings) => team.experts.join() === settings.experts.join();

export class SettingsForm {
  constructor(lane, about, onChange) {
    Object.assign(this, { lane, about, onChange, picking: false });
    this.root = element("fieldset");
  }

  get method() { return this.about.methods.find((one) => one.name === this.settings.method); }

  show(settings, compared) {
    Object.assign(this, { settings, compared });
    const focused = this.root.contains(document.activeElement) ? document.activeElement.dataset.name : null;
    const details = element("details", { class: "fold", open: this.root.querySelector(".fold")?.open },
      element("summary", { "data-name": "fold" }, "Settings"), this.#fields());
    this.root.replaceChildren(element("legend", {}, compared ? `Method ${"AB"[this.lane]}` : "Who and how"),
      element("div", { class: "choices" }, this.#who(), this.#how()), this.#experts(),
      element("p", { class: "says" }, METHODS[this.settings.method] ?? this.method?.summary ?? ""), details);
    if (focused) this.root.querySelector(`[data-name="${focused}"]`)?.focus();
    this.#disable();
  }

  #set(changes, redraw = true) {
    Object.assign(this.settings, changes);
    if (redraw) this.show(this.settings, this.compared);
    this.onChange();
  }

  // Methods that do not take these experts cannot be chosen, and say why.
  async #disable() {
    const asked = this.settings.experts.join();
    const reasons = await fitting(this.settings.experts).catch(() => ({}));
    if (asked !== this.settings.experts.join()) return;
    for (const option of this.root.querySelectorAll('[data-name="method"] option')) {
      const reason = reasons[option.value];
      option.disabled = Boolean(reason);
      option.textContent = reason ? `${option.value} (${shortly(reason)})` : option.value;
      option.title = reason ?? "";
    }
    if (reasons[this.settings.method]) this.#set({ method: ["routing", "single"].find((name) => !reasons[name]) ?? this.settings.method });
  }

  #choice(name, options, value, take, label = null) {
    return element("select", { "data-name": name, "aria-label": label, onchange: (event) => take(event.target.value) },
      ...Object.entries(options).map(([key, text]) => element("option", { value: key, selected: key === value }, text)));
  }

  #who() {
    const { settings, about } = this;
    const team = about.teams.find((one) => isTeam(one, settings));
    const value = this.picking ? "pick" : team ? `team:${team.name}` : settings.experts.length === 1 ? `expert:${settings.experts[0]}` : "pick";
    const option = (key, text) => element("option", { value: key, selected: key === value }, text);
    return element("label", { class: "field grow" }, "Experts", element("select", { "data-name": "team", onchange: (event) => this.#choose(event.target.value) },
      about.teams.length ? element("optgroup", { label: "Teams, with their fitted numbers" },
        ...about.teams.map((one) => option(`team:${one.name}`, `${one.experts.join(" + ")}${Object.keys(one.options).length ? ` (${sayNumbers(one.options)})` : ""}`))) : null,
      element("optgroup", { label: "One alone" }, ...about.experts.map((one) => option(`expert:${one.name}`, one.name))),
      option("pick", value === "pick" ? settings.experts.join(" + ") : "Choose some…")));
  }

  #choose(value) {
    const [kind, name] = value.split(":");
    this.picking = kind === "pick";
    const team = this.about.teams.find((one) => one.name === name);
    if (kind === "team") this.#set({ experts: [...team.experts], method: team.method, options: numbersOf(team) });
    else if (kind === "expert") this.#set({ experts: [name], method: "single" });
    else this.#set({ experts: this.settings.experts.length > 1 ? this.settings.experts : this.about.experts.slice(0, 2).map((one) => one.name) });
  }

  #how() {
    const names = Object.fromEntries(this.about.methods.map((one) => [one.name, one.name]));
    return element("label", { class: "field" }, "Method", this.#choice("method", names, this.settings.method, (method) => this.#set({ method })));
  }

  #experts() {
    const { settings } = this;
    const picked = !this.about.teams.some((team) => isTeam(team, settings)) && settings.experts.length !== 1;
    const rows = this.about.experts.map((expert) => {
      const place = settings.experts.indexOf(expert.name);
      const box = element("input", {
        type: "checkbox", checked: place >= 0, "data-name": `expert-${expert.name}`,
        onchange: (event) => {
          const all = this.about.experts.map((one) => one.name);
          const chosen = all.filter((name) => (name === expert.name ? event.target.checked : settings.experts.includes(name)));
          const experts = chosen.length ? chosen : [expert.name];
          this.picking = true;
          this.#set({ experts, method: experts.length === 1 ? "single" : settings.method === "single" ? "routing" : settings.method });
        },
      });
      const about = [expert.backbone, expert.objective !== "full" ? expert.objective : null, expert.parameters ? `${(expert.parameters / 1e6).toFixed(1)} M` : null];
      return element("label", { class: "inline check expert-row" }, box, element("span", { class: `dot ${place >= 0 ? `x${place}` : "none"}` }), expert.name,
        element("span", { class: "tag" }, about.filter(Boolean).join(" · ") || "expert"));
    });
    return element("div", { class: "expert-list", hidden: !picked && !this.picking }, ...rows);
  }

  #number(name, value, { least, most, whole }, take, label) {
    return element("input", {
      type: "number", value: value ?? "", min: least, max: most, step: whole ? 1 : "any", "data-name": name, "aria-label": label,
      onchange: (event) => {
        const number = Number(event.target.value);
        if (event.target.value === "" || !Number.isFinite(number)) { event.target.value = value ?? ""; return; }
        take(number);
      },
    });
  }

  #field(title, ...controls) {
    return element("label", { class: "field" }, title, ...controls);
  }

  // One field for an option, or one for each expert, as the method declares it.
  #option(option) {
    const { settings } = this;
    const title = option.name.replaceAll("_", " ").replace(/^./, (letter) => letter.toUpperCase());
    const most = ["particles", "runs"].includes(option.name) ? this.about.limits.particles : option.most;
    const bounds = { least: option.least, most, whole: option.kind === "whole" };
    if (option.per_expert) {
      return settings.experts.map((expert) => this.#field(`${title}: ${expert}`, this.#number(`${option.name}-${expert}`, settings.options[option.name]?.[expert] ?? option.usual, bounds,
        (value) => { (settings.options[option.name] ??= {})[expert] = value; this.#set({}, false); }, `${title} of ${expert}`)));
    }
    const take = (value) => { settings.options[option.name] = value; this.#set({}, false); };
    const value = settings.options[option.name] ?? option.default;
    if (option.kind === "choice") return [this.#field(title, this.#choice(option.name, Object.fromEntries(option.choices.map((one) => [one, one])), value, take))];
    if (option.kind === "factors") return [this.#field(title, this.#choice(option.name, { ...(this.about.letters ? IN_A_LINE : FACTORS), ...(option.default.startsWith("near") ? OVERLAPPING : {}) }, value, take))];
    return [this.#field(title, this.#number(option.name, value, bounds, take, title))];
  }

  #fields() {
    const { settings, about } = this;
    const fields = (this.method?.options ?? []).flatMap((option) => this.#option(option));
    const rules = Object.fromEntries(Object.entries(RULES).filter(([name]) => about.rules.includes(name)));
    fields.push(this.#field("Reveal", this.#choice("rule", rules, settings.rule, (rule) => this.#set({ rule, number: NUMBERS[rule]?.[1] ?? null }))));
    if (NUMBERS[settings.rule]) {
      fields.push(this.#field(NUMBERS[settings.rule][0], this.#number("number", settings.number, { least: 0, most: null, whole: false }, (number) => this.#set({ number }, false), NUMBERS[settings.rule][0])));
    }
    fields.push(this.#field("Seed", this.#number("seed", settings.seed, { least: 0, most: Number.MAX_SAFE_INTEGER, whole: true }, (seed) => this.#set({ seed }, false), "Seed")));
    return element("div", { class: "fields" }, ...fields);
  }
}

// A team's numbers as the form keeps them: by name, not by place.
export function numbersOf(team) {
  return Object.fromEntries(Object.entries(team.options).map(([name, value]) =>
    [name, Array.isArray(value) ? Object.fromEntries(team.experts.map((expert, place) => [expert, value[place]])) : value]));
}
