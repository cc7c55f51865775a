// The connection to the server, what is viewed, and the controls. A view: view.js; hands: hand.js.
import { Hand } from "./hand.js";
import { ViewPane } from "./view.js";

const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4, 8, 16];
const RETRY_MS = 1000;
const TAKEN_OVER = 4001, FULL = 4002, BAD_MESSAGE = 4003;

const at = id => document.getElementById(id);
let socket = null, panes = [], entries = [], state = null, isOver = false;

const send = message => {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
};
const hand = new Hand(send);

// ------------------------------------------------------------------------------------- connection

function sessionName() {
  const known = sessionStorage.getItem("session") ?? crypto.randomUUID();
  sessionStorage.setItem("session", known);
  return known;
}

function connect() {
  const address = new URL(`socket?session=${sessionName()}`, location.href);
  address.protocol = "ws:";
  socket = new WebSocket(address);
  socket.binaryType = "arraybuffer";
  socket.onopen = () => tellConnection("connected", false);
  socket.onmessage = event => {
    if (typeof event.data === "string") takeText(JSON.parse(event.data));
    else takePicture(event.data);
  };
  socket.onclose = event => {
    hand.release();
    const reasons = {
      [TAKEN_OVER]: "another tab shows this session: reload to take it back",
      [FULL]: "too many tabs are open: close some, and reload",
      [BAD_MESSAGE]: "the server refused a message: reload",
    };
    isOver = event.code in reasons;
    tellConnection(reasons[event.code] ?? "no connection: is rllib watch still running?", true);
    if (!isOver) setTimeout(connect, RETRY_MS);
  };
}

function tellConnection(text, isLost) {
  at("connection").textContent = text;
  at("connection").classList.toggle("lost", isLost);
}

function takeText(message) {
  if (message.catalogue) showCatalogue(message.catalogue);
  if (message.opening) {
    tellFailure("");
    tellConnection("opening", false);
    prepare(message.opening.entries);
    lastOfOthers = message.opening.after;
  }
  if (message.news) panes[message.news.view]?.showNews(message.news.what, message.news.told);
  if (message.failure) tellFailure(message.failure);
}

function tellFailure(text) {
  at("failure").textContent = text;
  at("failure").hidden = !text;
  if (text) tellConnection("connected", false);
}

// -------------------------------------------------------------------------------------- pictures
// If they come faster than they are drawn, the newest one is drawn next, and the others never.

let waiting = null, isDrawing = false, lastOfOthers = 0;

async function takePicture(data) {
  waiting = data;
  if (isDrawing) return;
  isDrawing = true;
  while (waiting) {
    const next = waiting;
    waiting = null;
    await draw(next).catch(error => tellFailure(`The page failed: ${error.message}`));
  }
  isDrawing = false;
}

async function draw(data) {
  const length = new DataView(data).getUint32(0);
  const told = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length)));
  let offset = 4 + length;
  const decoded = told.views.map(view => view.pictures.map(picture => {
    const file = new Blob([new Uint8Array(data, offset, picture.bytes)], { type: "image/jpeg" });
    offset += picture.bytes;
    return createImageBitmap(file).then(bitmap => [picture.name, bitmap]);
  }));
  const bitmaps = await Promise.all(decoded.map(pictures => Promise.all(pictures)));
  send({ seen: told.number });
  if (told.number <= lastOfOthers) return; // of what was viewed before
  lastOfOthers = 0;
  if (told.views.length !== panes.length) prepare(told.views.map(() => ""));
  state = told;
  told.views.forEach((view, i) => panes[i].show(view, Object.fromEntries(bitmaps[i]), told.runs));
  showControls();
  document.dispatchEvent(new CustomEvent("picture", { detail: told }));
}

// -------------------------------------------------------------------------------------- catalogue

function showCatalogue(told) {
  entries = told.entries;
  const groups = Map.groupBy
    ? Map.groupBy(entries, entry => entry.group)
    : entries.reduce((m, e) => m.set(e.group, [...(m.get(e.group) ?? []), e]), new Map());
  const chosen = told.open.length ? told.open : choice();
  for (const [number, id] of ["first", "second"].entries()) {
    const select = at(id);
    select.replaceChildren(...(number ? [new Option("nothing", "")] : []));
    for (const [name, members] of groups) {
      const group = document.createElement("optgroup");
      group.label = name;
      group.append(...members.map(entry =>
        new Option([entry.title, entry.detail].filter(Boolean).join(": "), entry.key)));
      select.append(group);
    }
    select.value = chosen[number] ?? (number ? "" : entries[0]?.key ?? "");
  }
  if (!told.open.length) openChosen();
}

const choice = () => location.hash.slice(1).split(",").filter(key => entries.some(e => e.key === key));

function openChosen() {
  const keys = [at("first").value, at("second").value].filter(Boolean);
  if (!keys.length) return;
  history.replaceState(null, "", `#${keys.join(",")}`);
  send({ open: { entries: keys, ...seedGiven() } });
}

function prepare(keys) {
  hand.detach();
  panes.forEach(pane => pane.remove());
  panes = keys.map((_, number) => new ViewPane(at("views"), send, hand, number));
  at("views").style.setProperty("--count", keys.length);
}

// --------------------------------------------------------------------------------------- controls

const seedGiven = () => {
  const seed = at("seed").value;
  return seed !== "" && at("seed").dataset.isGiven ? { seed: Number(seed) } : {};
};

function showControls() {
  const kinds = new Set(state.views.map(view => view.kind));
  at("controls").hidden = false;
  at("run").textContent = state.runs ? "Pause" : "Run";
  at("run").disabled = kinds.has("play");
  at("speed").value = String(state.speed);
  tellConnection(state.runs ? "running" : "paused", false);
  if (document.activeElement !== at("seed")) {
    at("seed").value = state.views[0].seed ?? "";
    delete at("seed").dataset.isGiven;
  }
  const isRecorded = kinds.size === 1 && kinds.has("episode");
  at("timeline").hidden = !isRecorded;
  at("another").hidden = isRecorded || state.views.some(view => view.is_saved_game);
  if (isRecorded) showTimeline();
}

let marked = null;

function showTimeline() {
  const longest = Math.max(...state.views.map(view => view.length));
  at("scrub").max = longest;
  if (document.activeElement !== at("scrub") || state.runs)
    at("scrub").value = Math.max(...state.views.map(view => view.step));
  const marks = state.views.flatMap(view => [
    ...view.moments.map(([step, reward]) => [step, reward < 0 ? "loss" : "reward"]),
    ...view.successes.map(step => [step, "success"]),
  ]);
  const key = JSON.stringify([longest, marks]);
  if (key === marked) return;
  marked = key;
  at("marks").replaceChildren(...marks.map(([step, kind]) => {
    const mark = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    const place = { x: (step / longest) * 1000 - 1, y: 0, width: 3, height: 10, class: kind };
    Object.entries(place).forEach(([name, value]) => mark.setAttribute(name, value));
    return mark;
  }));
}

at("speed").append(...SPEEDS.map(speed => new Option(`${speed}×`, String(speed))));
at("first").onchange = at("second").onchange = openChosen;
at("refresh").onclick = () => send({ refresh: true });
at("run").onclick = () => send({ run: !state?.runs });
at("step").onclick = () => send({ step: 1 });
at("speed").onchange = event => send({ speed: Number(event.target.value) });
at("seed").oninput = event => { event.target.dataset.isGiven = "yes"; };
at("seed").onkeydown = event => { if (event.key === "Enter") at("again").click(); };
at("again").onclick = () => {
  const seed = Number(at("seed").value);
  send({ restart: at("seed").value === "" ? -1 : Math.min(Math.max(Math.trunc(seed), 0), 2 ** 31 - 1) });
  at("seed").blur();
};
at("another").onclick = () => send({ restart: -1 });
at("scrub").oninput = event => send({ seek: Number(event.target.value) });
document.addEventListener("visibilitychange", () => send({ look: !document.hidden }));
window.addEventListener("beforeunload", event => {
  // Control and W is "run forward" in the game, and "close the tab" here.
  if (!isOver && state?.views.some(view => view.recorded)) event.preventDefault();
});

connect();
