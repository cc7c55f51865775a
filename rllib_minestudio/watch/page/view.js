// One view: its pictures, and what is known at the step that they show.

const LABELS = {
  forward: "W", left: "A", back: "S", right: "D", jump: "jump", sneak: "sneak", sprint: "sprint",
  attack: "attack", use: "use", inventory: "inventory", drop: "drop",
};
const SVG = "http://www.w3.org/2000/svg";
const CURVE = [300, 100];

function make(name, properties = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

const short = value => typeof value === "number"
  ? Number.isInteger(value) ? value.toLocaleString("en") : Number(value.toPrecision(4)).toString()
  : String(value);

function rows(list, facts) {
  const known = Object.entries(facts).filter(([, value]) => value !== null && value !== undefined && value !== "");
  list.replaceChildren(...known.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, short(value))]));
}

function inWords(action) {
  if (!action.keys) return JSON.stringify(action.action);
  const order = Object.keys(LABELS);
  const keys = [...action.keys].sort((one, other) => order.indexOf(one) - order.indexOf(other));
  const words = keys.map(key => LABELS[key] ?? key.replace("hotbar.", "slot "));
  const turn = turned(action.camera);
  return [...words, ...(turn ? [turn] : [])].join(" + ") || "nothing";
}

function turned([pitch, yaw]) {
  const parts = [];
  if (yaw) parts.push(`${Math.abs(yaw).toFixed(1)}° ${yaw > 0 ? "right" : "left"}`);
  if (pitch) parts.push(`${Math.abs(pitch).toFixed(1)}° ${pitch > 0 ? "down" : "up"}`);
  return parts.join(", ");
}

export class ViewPane {
  constructor(parent, send, hand, number) {
    [this.send, this.hand, this.number, this.pictures] = [send, hand, number, {}];
    this.title = make("h2");
    this.row = make("div", { className: "pictures" });
    this.task = make("p", { className: "task" });
    this.keep = null;
    this.strip = make("div", { className: "keys" });
    this.facts = make("dl");
    this.mind = make("dl");
    this.likeliest = make("ol", { className: "likeliest" });
    this.training = make("div");
    this.playOn = make("button", { className: "play-on", hidden: true });
    this.playOn.onclick = () => this.send({ play_on: { view: this.number, step: this.saved } });
    this.moments = make("div", { className: "moments" });
    this.inventory = make("dl");
    this.info = make("pre");
    this.details = make("details", { hidden: true }, make("summary", {}, "info"), this.info);
    const mind = make("div", {}, this.mind, this.likeliest);
    const columns = make("div", { className: "columns" }, this.facts, mind, this.inventory, this.training);
    this.root = make("article", {}, this.title, this.row, this.playOn, this.strip, this.task, columns, this.moments, this.details);
    parent.append(this.root);
    this.isShownKeys = "";
  }

  remove() { this.root.remove(); }

  show(view, bitmaps, runs) {
    const agent = view.agent === view.title ? "" : view.agent;
    const who = [agent, view.ended && `(${view.ended})`].filter(Boolean).join(" ");
    this.title.replaceChildren(view.title, " ", make("small", {}, who));
    for (const [name, bitmap] of Object.entries(bitmaps)) this.draw(name, bitmap, view);
    if (view.kind === "play") this.showPlay(view, runs);
    this.task.textContent = [view.task, view.text].filter(Boolean).join(": ");
    this.showKeys(view);
    rows(this.facts, {
      step: view.length === undefined ? view.step : `${view.step} of ${view.length}`,
      reward: view.reward, return: view.return, progress: view.progress,
      success: view.success === null ? null : view.success ? "yes" : "no",
      recorded: view.recorded ? `${view.recorded} steps, not kept yet` : null, kept: view.kept,
    });
    rows(this.mind, { value: view.value, entropy: view.entropy, "KL to the prior": view.kl });
    this.showLikeliest(view.likeliest ?? []);
    this.showMoments(view);
    this.saved = view.saved ?? null;
    this.playOn.hidden = this.saved === null;
    this.playOn.textContent = `Play on from step ${this.saved}`;
    rows(this.inventory, Object.fromEntries(view.inventory.map(([slot, item, n]) => [`slot ${slot}`, `${n} ${item}`])));
    this.details.hidden = view.info === undefined;
    if (this.details.open) this.info.textContent = JSON.stringify(view.info, null, 2);
  }

  draw(name, bitmap, view) {
    if (!this.pictures[name]) {
      const canvas = make("canvas");
      const persons = view.kind === "play" ? "" : "what a person sees";
      const caption = name === "seen" ? "what the agent sees" : persons;
      const figure = make("figure", { className: name }, canvas, make("figcaption", {}, caption));
      this.pictures[name] = { canvas, figure };
      if (name === "view") this.row.prepend(figure); else this.row.append(figure);
      if (name === "view" && view.kind === "play") this.preparePlay(canvas, figure);
    }
    const { canvas } = this.pictures[name];
    if (canvas.width !== bitmap.width || canvas.height !== bitmap.height)
      [canvas.width, canvas.height] = [bitmap.width, bitmap.height];
    this.pictures[name].figure.style.setProperty("--aspect", bitmap.width / bitmap.height);
    canvas.getContext("2d").drawImage(bitmap, 0, 0);
    bitmap.close();
  }

  // ------------------------------------------------------------------------------- playing oneself

  preparePlay(canvas, figure) {
    this.prompt = make("div", { className: "prompt" });
    figure.append(this.prompt);
    this.prompt.onclick = () => {
      if (this.isOver) return;
      Promise.resolve(canvas.requestPointerLock()).catch(error => {
        this.prompt.textContent = `The mouse cannot be used (${error.message}). Click again.`;
      });
    };
    this.hand.attach(canvas, isLocked => {
      this.send({ run: isLocked });
      this.prompt.hidden = isLocked;
    });
    this.name = make("input", { value: localStorage.getItem("agent") ?? "person", maxLength: 100, ariaLabel: "name of who played" });
    const keep = make("button", { className: "do-keep" }, "Keep");
    const discard = make("button", { className: "do-discard" }, "Discard and begin again");
    keep.onclick = () => {
      localStorage.setItem("agent", this.name.value);
      this.send({ keep: { agent: this.name.value.trim() || "person" } });
    };
    discard.onclick = () => this.send({ discard: true });
    this.keep = make("div", { className: "keep", hidden: true }, "Keep what you have played, as by ", this.name, keep, discard);
    this.root.insertBefore(this.keep, this.strip);
  }

  showPlay(view, runs) {
    this.isOver = Boolean(view.ended);
    this.keep.hidden = runs || !view.recorded;
    if (view.ended && this.hand.isLocked) document.exitPointerLock();
    this.prompt.hidden = this.hand.isLocked;
    const over = view.kept ? `Kept as ${view.kept}.` : `The episode is over: ${view.ended}.`;
    this.prompt.textContent = view.ended
      ? `${over} Begin again above.`
      : "Click to play; Escape pauses.\nW A S D and Space move, Shift sneaks, Control or Tab sprints."
        + "\nThe left button attacks, the right one uses.\nE opens the inventory, 1 to 9 and the wheel choose a slot.";
  }

  // ------------------------------------------------------------------------------------- the facts

  showKeys(view) {
    const told = JSON.stringify([view.keys, view.camera, view.action]);
    if (told === this.isShownKeys) return;
    this.isShownKeys = told;
    if (!view.keys) {
      this.strip.replaceChildren(...(view.action === undefined ? [] : [make("kbd", { className: "down" }, JSON.stringify(view.action))]));
      return;
    }
    const down = new Set(view.keys);
    const slot = view.keys.find(key => key.startsWith("hotbar."));
    const keys = Object.entries(LABELS).map(([key, label]) =>
      make("kbd", { className: down.has(key) ? "down" : "" }, label));
    keys.push(make("kbd", { className: slot ? "down" : "" }, slot ? slot.slice(7) : "1-9"));
    this.strip.replaceChildren(...keys, make("span", { className: "turn" }, turned(view.camera)));
  }

  showLikeliest(actions) {
    this.likeliest.replaceChildren(...actions.map(action => {
      const bar = make("i");
      bar.style.width = `${100 * action.p}%`;
      return make("li", {}, bar, make("b", {}, `${(100 * action.p).toFixed(1)}%`), make("span", {}, inWords(action)));
    }));
  }

  showMoments(view) {
    const moments = [
      ...view.moments.map(([step, reward]) => [step, `${reward > 0 ? "+" : ""}${short(reward)}`]),
      ...(view.successes ?? []).map(step => [step, "success"]),
    ].sort((one, other) => one[0] - other[0]);
    const told = JSON.stringify(moments);
    if (told === this.shownMoments) return;
    this.shownMoments = told;
    this.moments.replaceChildren(...moments.map(([step, label]) => {
      const text = `${(step / 20).toFixed(1)} s ${label}`;
      if (view.kind !== "episode") return make("span", {}, text);
      const button = make("button", {}, text);
      button.onclick = () => this.send({ seek: step });
      return button;
    }));
  }

  showNews(kind, told) {
    if (kind !== "training") return;
    const numbers = make("dl");
    rows(numbers, {
      iteration: told.iteration, "steps trained": told.steps, "steps per second": told.steps_per_second,
      "mean return": told.return, "entropy (training)": told.entropy, "KL (training)": told.kl, loss: told.loss,
    });
    const warnings = make("ul", { className: "warnings" }, ...told.warnings.map(text => make("li", {}, text)));
    this.training.replaceChildren(numbers, ...(told.curve.length > 1 ? [curve(told.curve)] : []), warnings);
  }
}

function curve(points) {
  const [width, height] = CURVE;
  const [steps, returns] = [points.map(point => point[0]), points.map(point => point[1])];
  const [low, high] = [Math.min(0, ...returns), Math.max(...returns)];
  const x = step => (width * (step - steps[0])) / (steps.at(-1) - steps[0] || 1);
  const y = value => height - ((height - 6) * (value - low)) / (high - low || 1) - 3;
  const svg = document.createElementNS(SVG, "svg"), line = document.createElementNS(SVG, "polyline");
  line.setAttribute("points", points.map(([step, value]) => `${x(step)},${y(value)}`).join(" "));
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("class", "curve");
  svg.append(line);
  const caption = `mean return, ${short(low)} to ${short(high)}, over ${short(steps.at(-1))} steps`;
  return make("figure", {}, svg, make("figcaption", {}, caption));
}
