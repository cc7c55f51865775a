// Plays scenarios in prismarine-physics, an independent simulation of the player's motion, driven
// by the keys as Java's client is: `node play.js < scenarios.json > traces.json`.
//
// In:  [{boxes: [[x0, y0, z0, x1, y1, z1, block]] (block: name or name[property=value,...]), start: [x, y, z], yaw, actions}], where an action
//      is MineStudio's: {forward: 1, sprint: 1, ..., camera: [pitch, yaw]}, missing keys not held.
// Out: for each scenario and tick [x, y, z, sprinting, on ground].
'use strict'

const fs = require('fs')
const Module = require('module')
const path = require('path')
const { Vec3 } = require('vec3')
const data = require('minecraft-data')('1.16.5')
const Block = require('prismarine-block')('1.16.5')
const AABB = require('prismarine-physics/lib/aabb')

const HALF_WIDTH = 0.3
const STANDING = 1.8
const SNEAKING = 1.5
const STEP = 0.6
const EPSILON = 1e-7 // Java's collisions overlook overlaps up to this
const RUN_INPUT = 0.8
const TAP_TICKS = 7
const KEYS = ['forward', 'back', 'left', 'right', 'jump', 'sprint', 'sneak']

// Where the package differs from Java 1.16.5: [rule, its code, our code, how often it occurs].
const CORRECTIONS = [
  ['the box has the height of the pose',
    'physics.playerHeight, w).offset', 'entityHeight(), w).offset', 1],
  ['the pose slows the input down, not the key',
    'if (entity.control.sneak) {\n      strafe *=', 'if (entity.slowed) {\n      strafe *=', 1],
  ['sprinting accelerates in the air from the tick after on',
    'if (entity.control.sprint) {\n          const airSprintFactor',
    'if (entity.sprintedBefore) {\n          const airSprintFactor', 1],
  ['the edge guard also works just above the ground',
    'if (entity.control.sneak && entity.onGround) {', 'if (entity.guardsEdge()) {', 1],
  ['the edge guard refuses drops of more than a step, along x',
    'getSurroundingBBs(world, getPlayerBB(pos).offset(dx, 0, 0)).length === 0',
    '!world.touches(getPlayerBB(pos).offset(dx, -physics.stepHeight, 0))', 1],
  ['... along z',
    'getSurroundingBBs(world, getPlayerBB(pos).offset(0, 0, dz)).length === 0',
    '!world.touches(getPlayerBB(pos).offset(0, -physics.stepHeight, dz))', 1],
  ['... and along both',
    'getSurroundingBBs(world, getPlayerBB(pos).offset(dx, 0, dz)).length === 0',
    '!world.touches(getPlayerBB(pos).offset(dx, -physics.stepHeight, dz))', 1],
  ['the larger horizontal component moves first',
    `    for (const blockBB of surroundingBBs) {
      dx = blockBB.computeOffsetX(playerBB, dx)
    }
    playerBB.offset(dx, 0, 0)

    for (const blockBB of surroundingBBs) {
      dz = blockBB.computeOffsetZ(playerBB, dz)
    }
    playerBB.offset(0, 0, dz)
`, '    ;[dx, dz] = moveHorizontally(surroundingBBs, playerBB, dx, dz)\n', 1],
  ['... on a step, too',
    `      let dx1 = oldVelX
      let dx2 = oldVelX
      for (const blockBB of surroundingBBs) {
        dx1 = blockBB.computeOffsetX(BB1, dx1)
        dx2 = blockBB.computeOffsetX(BB2, dx2)
      }
      BB1.offset(dx1, 0, 0)
      BB2.offset(dx2, 0, 0)

      let dz1 = oldVelZ
      let dz2 = oldVelZ
      for (const blockBB of surroundingBBs) {
        dz1 = blockBB.computeOffsetZ(BB1, dz1)
        dz2 = blockBB.computeOffsetZ(BB2, dz2)
      }
      BB1.offset(0, 0, dz1)
      BB2.offset(0, 0, dz2)
`, `      const [dx1, dz1] = moveHorizontally(surroundingBBs, BB1, oldVelX, oldVelZ)
      const [dx2, dz2] = moveHorizontally(surroundingBBs, BB2, oldVelX, oldVelZ)
`, 1],
  ['the room for a step is looked for along the wanted motion',
    'BB1.clone().extend(dx, 0, dz)', 'BB1.clone().extend(oldVelX, 0, oldVelZ)', 1],
  ['after a step the vertical motion of the tick counts (since 1.14), lower way',
    'dy = -dy1\n', 'dy = oldVelY - dy1\n', 1],
  ['... higher way',
    'dy = -dy2\n', 'dy = oldVelY - dy2\n', 1],
  ['... so that the whole of the vertical motion is what led to the last box',
    'playerBB.offset(0, dy, 0)\n\n      if (oldVelXCol',
    'playerBB.offset(0, dy, 0)\n      dy = playerBB.minY - oldBB.minY\n\n      if (oldVelXCol', 1],
  ['the ground is what lies half a block below the feet (since 1.15)',
    'const blockUnder = world.getBlock(pos.offset(0, -1, 0))',
    'const blockUnder = world.getBlock(pos.offset(0, -0.5000001, 0))', 1],
  ['beds throw up who lands on them, and slime slows who walks on it',
    `      } else {
        vel.y = 0
      }
    }

    // Finally`, `      } else if (/_bed$/.test(blockAtFeet?.name) && !entity.control.sneak && vel.y < 0) {
        vel.y *= -0.66
      } else {
        vel.y = 0
      }
    }
    const onSlime = entity.onGround && blockAtFeet?.type === slimeBlockId
    if (onSlime && !entity.control.sneak && Math.abs(vel.y) < 0.1) {
      const drag = 0.4 + Math.abs(vel.y) * 0.2
      vel.x *= drag
      vel.z *= drag
    }

    // Finally`, 1]
]

let poseHeight = STANDING

function moveHorizontally (obstacles, box, dx, dz) {
  const wanted = { x: dx, z: dz }
  for (const axis of Math.abs(dx) < Math.abs(dz) ? ['z', 'x'] : ['x', 'z']) {
    const method = axis === 'x' ? 'computeOffsetX' : 'computeOffsetZ'
    for (const obstacle of obstacles) wanted[axis] = obstacle[method](box, wanted[axis])
    box.offset(axis === 'x' ? wanted.x : 0, 0, axis === 'z' ? wanted.z : 0)
  }
  return [wanted.x, wanted.z]
}

function loadPhysics () {
  const file = require.resolve('prismarine-physics')
  let source = fs.readFileSync(file, 'utf8')
  for (const [rule, theirs, ours, count] of CORRECTIONS) {
    const parts = source.split(theirs)
    if (parts.length !== count + 1) throw new Error(`another version of prismarine-physics? Not found: ${rule}`)
    source = parts.join(ours)
  }
  const corrected = new Module(file, module)
  corrected.filename = file
  corrected.paths = Module._nodeModulePaths(path.dirname(file))
  global.entityHeight = () => poseHeight
  global.moveHorizontally = moveHorizontally
  corrected._compile(source, file)
  return corrected.exports
}

// Java's boxes collide with a tolerance; the package's compare exactly, so that a player along a wall
// sticks to it where the last bit of a coordinate is wrong.
function tolerateOverlap () {
  for (const [axis, one, two] of [['X', 'Y', 'Z'], ['Y', 'X', 'Z'], ['Z', 'X', 'Y']]) {
    const [low, high] = ['min' + axis, 'max' + axis]
    AABB.prototype['computeOffset' + axis] = function (box, offset) {
      for (const other of [one, two]) {
        if (box['max' + other] <= this['min' + other] + EPSILON) return offset
        if (box['min' + other] >= this['max' + other] - EPSILON) return offset
      }
      const room = offset > 0 ? this[low] - box[high] : this[high] - box[low]
      if (offset > 0 && room >= -EPSILON) return Math.max(0, Math.min(room, offset))
      if (offset < 0 && room <= EPSILON) return Math.min(0, Math.max(room, offset))
      return offset
    }
  }
}

class World {
  constructor (boxes) {
    this.names = new Map()
    this.blocks = new Map()
    for (const [x0, y0, z0, x1, y1, z1, name] of boxes) {
      for (let x = x0; x <= x1; x++) {
        for (let y = y0; y <= y1; y++) {
          for (let z = z0; z <= z1; z++) this.names.set(`${x},${y},${z}`, name)
        }
      }
    }
  }

  getBlock (place) {
    const [x, y, z] = [Math.floor(place.x), Math.floor(place.y), Math.floor(place.z)]
    const key = `${x},${y},${z}`
    let block = this.blocks.get(key)
    if (!block) {
      const name = this.names.get(key) || 'air'
      block = name.includes('[') ? Block.fromString(name, 0) : Block.fromStateId(data.blocksByName[name].defaultState, 0)
      block.position = new Vec3(x, y, z)
      this.blocks.set(key, block)
    }
    return block
  }

  touches (box) {
    for (let x = Math.floor(box.minX); x <= Math.floor(box.maxX); x++) {
      for (let y = Math.floor(box.minY) - 1; y <= Math.floor(box.maxY); y++) {
        for (let z = Math.floor(box.minZ); z <= Math.floor(box.maxZ); z++) {
          for (const [x0, y0, z0, x1, y1, z1] of this.getBlock(new Vec3(x, y, z)).shapes) {
            if (box.minX < x + x1 - EPSILON && box.maxX > x + x0 + EPSILON &&
                box.minY < y + y1 - EPSILON && box.maxY > y + y0 + EPSILON &&
                box.minZ < z + z1 - EPSILON && box.maxZ > z + z0 + EPSILON) return true
          }
        }
      }
    }
    return false
  }
}

// The rules of LocalPlayer.aiStep, Player.updatePlayerPose and Player.isAboveGround of Java 1.16.5.
class Client {
  constructor (scenario) {
    this.world = new World(scenario.boxes)
    this.physics = Physics(data, this.world)
    this.yaw = scenario.yaw
    this.keys = {}
    this.input = 0
    this.tapTicks = 0
    this.sprinting = false
    this.fallen = 0
    this.state = new PlayerState({
      version: '1.16.5',
      jumpTicks: 0,
      jumpQueued: false,
      fireworkRocketDuration: 0,
      inventory: { slots: [] },
      entity: {
        position: new Vec3(...scenario.start), velocity: new Vec3(0, 0, 0), onGround: false,
        isInWater: false, isInLava: false, isInWeb: false, isCollidedHorizontally: false,
        isCollidedVertically: false, elytraFlying: false, attributes: {}, yaw: 0, pitch: 0, effects: {}
      }
    }, {})
    this.state.guardsEdge = () => this.guardsEdge()
    poseHeight = STANDING
  }

  box (height) {
    const { x, y, z } = this.state.pos
    return new AABB(x - HALF_WIDTH, y, z - HALF_WIDTH, x + HALF_WIDTH, y + height, z + HALF_WIDTH)
  }

  fits (height) {
    return !this.world.touches(this.box(height))
  }

  guardsEdge () {
    if (!this.keys.sneak) return false
    if (this.state.onGround) return true
    return this.fallen < STEP && this.world.touches(this.box(poseHeight).offset(0, this.fallen - STEP, 0))
  }

  sprint (keys, sneaked, ranBefore) {
    const runs = this.input >= RUN_INPUT
    if (this.tapTicks > 0) this.tapTicks--
    if (sneaked) this.tapTicks = 0
    if (this.state.onGround && !sneaked && !ranBefore && runs && !this.sprinting) {
      if (this.tapTicks <= 0 && !keys.sprint) this.tapTicks = TAP_TICKS
      else this.sprinting = true
    }
    if (!this.sprinting && runs && keys.sprint) this.sprinting = true
    if (this.sprinting && (this.input <= 1e-5 || this.state.isCollidedHorizontally)) this.sprinting = false
  }

  tick (action) {
    const keys = Object.fromEntries(KEYS.map(key => [key, action[key] ? 1 : 0]))
    const sneaked = Boolean(this.keys.sneak)
    const ranBefore = this.input >= RUN_INPUT
    const sprintedBefore = this.sprinting
    const crouching = this.fits(SNEAKING) && (sneaked || !this.fits(STANDING))
    this.yaw += action.camera ? action.camera[1] : 0
    this.input = (keys.forward - keys.back) * (crouching ? 0.3 : 1)
    this.keys = keys
    this.sprint(keys, sneaked, ranBefore)
    const before = this.state.pos.y
    Object.assign(this.state, { slowed: crouching, sprintedBefore, yaw: Math.PI * (1 - this.yaw / 180) })
    Object.assign(this.state.control, keys, { sprint: this.sprinting ? 1 : 0 })
    this.physics.simulatePlayer(this.state, this.world)
    const moved = this.state.pos.y - before
    if (this.state.onGround) this.fallen = 0
    else if (moved < 0) this.fallen -= moved
    const wanted = keys.sneak ? SNEAKING : STANDING
    if (this.fits(wanted)) poseHeight = wanted
    else if (this.fits(SNEAKING)) poseHeight = SNEAKING
    const { x, y, z } = this.state.pos
    return [x, y, z, this.sprinting ? 1 : 0, this.state.onGround ? 1 : 0]
  }
}

const { Physics, PlayerState } = loadPhysics()
tolerateOverlap()
const scenarios = JSON.parse(fs.readFileSync(0))
const traces = scenarios.map(scenario => {
  const client = new Client(scenario)
  return scenario.actions.map(action => client.tick(action))
})
fs.writeFileSync(1, JSON.stringify(traces))
