// Keyboard and mouse of whoever plays. They count while the pointer is locked to the picture.

const KEYS = {
  KeyW: "forward", KeyS: "back", KeyA: "left", KeyD: "right", Space: "jump",
  ShiftLeft: "sneak", ControlLeft: "sprint", Tab: "sprint", KeyE: "inventory", KeyQ: "drop",
};
for (let slot = 1; slot <= 9; slot += 1) KEYS[`Digit${slot}`] = `hotbar.${slot}`;
const BUTTONS = { 0: "attack", 2: "use" };

const DEGREES_PER_PIXEL = 0.15; // as in VPT's recordings: 2400 pixels are a full turn
const MOUSE_MS = 8; // movements within this time are sent together
const MOST_DEGREES = 3600;

const clipped = degrees => Math.max(-MOST_DEGREES, Math.min(MOST_DEGREES, degrees));

export class Hand {
  constructor(send) {
    this.send = send;
    this.picture = null;
    this.onlock = () => {};
    this.release();
    document.addEventListener("pointerlockchange", () => {
      if (!this.isLocked) this.release();
      this.onlock(this.isLocked);
    });
    document.addEventListener("keydown", event => this.key(event, true));
    document.addEventListener("keyup", event => this.key(event, false));
    document.addEventListener("mousedown", event => this.button(event, true));
    document.addEventListener("mouseup", event => this.button(event, false));
    document.addEventListener("mousemove", event => this.move(event));
    document.addEventListener("wheel", event => this.wheel(event), { passive: false });
    window.addEventListener("blur", () => { this.release(); this.flush(); });
  }

  get isLocked() { return this.picture !== null && document.pointerLockElement === this.picture; }

  attach(picture, onlock) { [this.picture, this.onlock] = [picture, onlock]; }

  detach() {
    if (this.isLocked) document.exitPointerLock();
    [this.picture, this.onlock] = [null, () => {}];
    this.release();
  }

  release() {
    [this.held, this.tapped] = [new Set(), new Set()];
    [this.pitch, this.yaw, this.scroll] = [0, 0, 0];
  }

  change(key, isDown) {
    if (isDown) this.tapped.add(key);
    if (isDown) this.held.add(key); else this.held.delete(key);
    this.flush();
  }

  key(event, isDown) {
    const key = KEYS[event.code];
    if (!this.isLocked || key === undefined) return;
    event.preventDefault();
    if (!event.repeat) this.change(key, isDown);
  }

  button(event, isDown) {
    const key = BUTTONS[event.button];
    if (!this.isLocked || key === undefined) return;
    event.preventDefault();
    this.change(key, isDown);
  }

  move(event) {
    if (!this.isLocked) return;
    this.pitch += event.movementY * DEGREES_PER_PIXEL;
    this.yaw += event.movementX * DEGREES_PER_PIXEL;
    this.timer ??= setTimeout(() => this.flush(), MOUSE_MS);
  }

  wheel(event) {
    if (!this.isLocked) return;
    event.preventDefault();
    this.scroll += Math.sign(event.deltaY);
    this.flush();
  }

  flush() {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (this.picture === null) return;
    this.send({
      hand: {
        keys: [...this.held], tapped: [...this.tapped],
        turn: [clipped(this.pitch), clipped(this.yaw)],
        scroll: Math.max(-100, Math.min(100, this.scroll)),
      },
    });
    this.tapped.clear();
    [this.pitch, this.yaw, this.scroll] = [0, 0, 0];
  }
}
