// The choices of one lane: experts, temperatures, method, factors, reveal rule and the rest.

import { element } from "./grid.js";

const METHODS = {
  routing: "Each cell goes to the expert with the largest margin there. The paper’s method.",
  "soft-routing": "Every expert speaks for every cell, weighted by its margin.",
  single: "One expert alone.",
  mixture: "The average of the experts’ distributions, cell by cell.",
  product: "The product of the experts’ distributions, cell by cell.",
  "geometric-mean": "The product with exponents that add up to one.",
  superdiff: "One expert per step for the whole grid, by the density of what is drawn so far.",
  "superdiff-and": "Weights that keep all experts’ densities equal.",
  fkc: "Particles drawn from the product and reweighted (Feynman–Kac).",
  rne: "Particles drawn from the mixture and reweighted.",
  views: "Where from the occupancy expert, which color from the other.",
  vote: "Each expert answers alone, several times; every cell takes the majority.",
};
const FACTORS = { pixel: "each cell", row: "rows", column: "columns", block: "blocks", component: "objects of the input", whole: "the whole grid" };
const RULES = {
  exact: "one cell a pass, surest first", fast: "fast, as in `solve`", confidence: "surest first, in T steps",
  margin: "all above a margin", entropy: "as many as entropy allows",
  product: "while all are likely right", frechet: "… whatever depends on what", ancestral: "at random, in T steps",
};
const ROUTED = ["routing", "soft-routing"];
const COUNTED = { fkc: ["particles", "Particles"], rne: ["particles", "Particles"], vote: ["runs", "Runs of each"] };

export class SettingsForm {
  constructor(lane, about, onChange) {
    Object.assign(this, { lane, about, onChange });
    this.root = element("fieldset");
  }

  show(settings, compared) {
    this.settings = settings;
    const legend = element("legend", {}, compared ? `Method ${"AB"[this.lane]}` : "Method");
    this.root.replaceChildren(legend, this.#experts(), this.#fields(), element("p", { class: "says" }, METHODS[settings.method] ?? ""));
  }

  #set(changes, redraw = true) {
    Object.assign(this.settings, changes);
    const focused = document.activeElement?.dataset?.name;
    if (redraw) {
      this.show(this.settings, this.root.querySelector("legend").textContent !== "Method");
      this.root.querySelector(`[data-name="${focused}"]`)?.focus();
    }
    this.onChange();
  }

  #experts() {
    const { settings } = this;
    const single = settings.method === "single";
    const rows = this.about.experts.map((expert) => {
      const place = settings.experts.indexOf(expert.name);
      const box = element("input", {
        type: single ? "radio" : "checkbox", name: `experts-${this.lane}`, checked: place >= 0, "data-name": `expert-${expert.name}`,
        onchange: (event) => {
          const all = this.about.experts.map((one) => one.name);
          const chosen = single ? [expert.name] : all.filter((name) => (name === expert.name ? event.target.checked : settings.experts.includes(name)));
          this.#set({ experts: chosen.length ? chosen : [expert.name] });
        },
      });
      const about = [expert.backbone, expert.objective !== "full" ? expert.objective : null, expert.parameters ? `${(expert.parameters / 1e6).toFixed(1)} M` : null];
      const row = element("div", { class: "expert-row" },
        element("label", { class: "inline check" }, box, element("span", { class: `dot x${Math.max(place, 0)}` }), expert.name,
          element("span", { class: "tag" }, about.filter(Boolean).join(" · ") || "expert")));
      row.querySelector(".dot").style.background = place >= 0 ? "var(--v)" : "var(--line)";
      if (place >= 0 && ROUTED.includes(settings.method)) {
        row.append(element("label", { class: "inline" }, "temperature", this.#number(`temperature-${expert.name}`, settings.temperatures[expert.name] ?? 1,
          { min: 0.01, max: 100, step: 0.05 }, (value) => { settings.temperatures[expert.name] = value; this.#set({}, false); }, `Temperature of ${expert.name}`)));
      }
      return row;
    });
    return element("div", { class: "expert-list" }, ...rows);
  }

  #number(name, value, { min, max, step }, take, label) {
    return element("input", {
      type: "number", value, min, max, step, "data-name": name, "aria-label": label,
      onchange: (event) => {
        const number = Number(event.target.value);
        if (event.target.value === "" || !Number.isFinite(number)) { event.target.value = value; return; }
        take(number);
      },
    });
  }

  #field(title, ...controls) {
    return element("label", { class: "field" }, title, ...controls);
  }

  #choice(name, options, value, take) {
    return element("select", { "data-name": name, onchange: (event) => take(event.target.value) },
      ...Object.entries(options).map(([key, text]) => element("option", { value: key, selected: key === value }, text)));
  }

  #fields() {
    const { settings } = this;
    const methods = Object.fromEntries(Object.keys(METHODS).filter((name) => this.about.methods.includes(name)).map((name) => [name, name]));
    const fields = [this.#field("Method", this.#choice("method", methods, settings.method, (method) => {
      const experts = method === "single" ? settings.experts.slice(0, 1) : settings.method === "single" ? this.about.experts.slice(0, 2).map((one) => one.name) : settings.experts;
      this.#set({ method, experts });
    }))];
    if (ROUTED.includes(settings.method)) {
      fields.push(this.#field("Factors", this.#choice("factors", FACTORS, settings.factors, (factors) => this.#set({ factors }))));
      if (settings.factors === "block") {
        const side = (index, label) => this.#number(`block-${index}`, settings.block[index], { min: 1, max: 10, step: 1 },
          (value) => { settings.block[index] = Math.min(Math.max(Math.round(value), 1), 10); this.#set({}); }, label);
        fields.push(this.#field("Block", element("span", { class: "size" }, side(0, "Block rows"), "×", side(1, "Block columns"))));
      }
    }
    if (settings.method === "soft-routing") {
      fields.push(this.#field("Softness", this.#number("softness", settings.softness, { min: 0.001, max: 1000, step: 0.01 }, (softness) => this.#set({ softness }, false))));
    }
    if (COUNTED[settings.method]) {
      const [name, title] = COUNTED[settings.method];
      fields.push(this.#field(title,
        this.#number(name, settings[name], { min: 1, max: this.about.limits.particles, step: 1 }, (value) => this.#set({ [name]: value }, false))));
    }
    const rules = Object.fromEntries(Object.entries(RULES).filter(([name]) => this.about.rules.includes(name)));
    fields.push(this.#field("Reveal", this.#choice("rule", rules, settings.reveal.rule, (rule) => { settings.reveal.rule = rule; this.#set({}); })));
    const parameter = { confidence: ["steps", "Steps T", { min: 1, max: this.about.limits.steps, step: 1 }], ancestral: ["steps", "Steps T", { min: 1, max: this.about.limits.steps, step: 1 }],
      margin: ["threshold", "Margin above", { min: 0, max: 1, step: 0.005 }], product: ["threshold", "Chance", { min: 0, max: 1, step: 0.005 }],
      frechet: ["threshold", "Chance", { min: 0, max: 1, step: 0.005 }], entropy: ["gamma", "Nats", { min: 0, max: 1000, step: 0.005 }] }[settings.reveal.rule];
    if (parameter) {
      const [name, title, range] = parameter;
      fields.push(this.#field(title, this.#number(name, settings.reveal[name], range, (value) => { settings.reveal[name] = value; this.#set({}, false); })));
    }
    fields.push(this.#field("Seed", this.#number("seed", settings.seed, { min: 0, max: Number.MAX_SAFE_INTEGER, step: 1 }, (seed) => this.#set({ seed }, false))));
    return element("div", { class: "fields" }, ...fields);
  }
}
