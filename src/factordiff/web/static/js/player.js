// The trajectory's clock: where we are, playing or not, following a run that is still going on or not.

export class Player {
  constructor(onShow) {
    this.onShow = onShow;
    this.length = 0;
    this.at = 0;
    this.live = false; // show each new step as it comes
    this.timer = null;
    const by = (id) => document.getElementById(id);
    Object.assign(this, { scrub: by("scrub"), label: by("step-label"), playButton: by("play"), speed: by("speed") });
    this.buttons = ["first", "back", "play", "forward", "last"].map(by);
    by("first").addEventListener("click", () => this.go(0));
    by("back").addEventListener("click", () => this.go(this.at - 1));
    by("forward").addEventListener("click", () => this.go(this.at + 1));
    by("last").addEventListener("click", () => this.go(this.length));
    this.playButton.addEventListener("click", () => this.toggle());
    this.scrub.addEventListener("input", () => this.go(Number(this.scrub.value)));
    this.speed.addEventListener("change", () => { if (this.timer) { this.pause(); this.play(); } });
    this.#draw();
  }

  reset(live) {
    this.pause();
    this.length = 0;
    this.at = 0;
    this.live = live;
    this.#draw();
  }

  grow(length) {
    this.length = Math.max(this.length, length);
    if (this.live) this.at = this.length;
    this.#draw();
  }

  // A person chose a step: stop playing, stop following.
  go(at) {
    this.pause();
    this.live = false;
    this.#move(at);
  }

  toggle() {
    if (this.timer || this.live) { this.pause(); this.live = false; this.#draw(); } else this.play();
  }

  play() {
    if (!this.length) return;
    if (this.at >= this.length) this.#move(0);
    this.timer = setInterval(() => {
      if (this.at >= this.length) this.pause();
      else this.#move(this.at + 1);
    }, 1000 / Number(this.speed.value));
    this.#draw();
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    this.#draw();
  }

  #move(at) {
    this.at = Math.min(Math.max(at, 0), this.length);
    this.#draw();
    this.onShow(this.at);
  }

  #draw() {
    const playing = Boolean(this.timer) || this.live;
    this.scrub.max = this.length;
    this.scrub.value = this.at;
    this.scrub.disabled = !this.length;
    for (const button of this.buttons) button.disabled = !this.length;
    this.playButton.textContent = playing ? "❚❚" : "▶";
    this.playButton.setAttribute("aria-label", playing ? "Pause" : "Play");
    this.label.textContent = this.length ? (this.at ? `step ${this.at} of ${this.length}` : `before step 1 of ${this.length}`) : "no steps yet";
  }
}
