"""A game: its beginning and its ticks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rllib_minestudio.env.voxel.entities.mobs import (
    IN_LAVA,
    IN_PORTAL,
    MOB_BURNS,
    MOB_ON_LEAD,
    SNOW_GOLEM,
    rare_conditions,
    tick_items,
    tick_mobs,
)
from rllib_minestudio.env.voxel.game import (
    doors,
    fire,
    golems,
    leads,
    projectiles,
    screen_handling,
    sleeping,
    spawning,
    supports,
)
from rllib_minestudio.env.voxel.game.block_ticks import Place
from rllib_minestudio.env.voxel.game.event_handlers import resolve_all
from rllib_minestudio.env.voxel.game.game_state import GameState
from rllib_minestudio.env.voxel.game.use_and_drop import drop_held_item, use_item
from rllib_minestudio.env.voxel.player.locomotion import tick_player
from rllib_minestudio.env.voxel.player.player import (
    ATTACK,
    DROP,
    NO_SLOT,
    OPEN_INVENTORY,
    SNEAK,
    USE,
    read_camera,
    read_hotbar,
    read_keys,
    tick_effects,
)
from rllib_minestudio.env.voxel.world.climate import BIOMES

BLOCK_TICKS: dict[str, Callable[[GameState, Iterator[Place]], None]] = {
    supports.FALL: supports.let_go,
    doors.RELEASE: doors.release,
    supports.SUPPORT: supports.break_unsupported,
    fire.BURN: fire.burn,
}
"""What happens at the scheduled ticks of blocks, by their kind. A handler takes the places in their
order; those that it leaves are due again in the next tick."""


class Game:
    """One game.

    Attributes:
        state: Everything that the game consists of.
    """

    def __init__(self) -> None:
        self.state = GameState()

    def begin(self, seed: int, biome: str | None, natural_animals: bool = False) -> None:
        """Create a new world and put the player on it.

        Args:
            seed: Any integer; it and the actions determine the whole game.
            biome: One of `BIOMES` to begin in; None to begin at the origin.
            natural_animals: Whether herds come with the land.
        """
        state = self.state
        state.reset(seed, natural_animals)
        screen_handling.prepare_inventory(state)
        x, z = 0, 0
        if biome is not None:
            x, z = spawning.find_biome(state, BIOMES.index(biome), x, z) or (x, z)
        spawning.teleport(state, *spawning.surface_place(state, x, z))
        state.player.yaw = state.random() * 360.0
        state.herds.follow(state.world, state.mobs)

    def tick(self, action: Mapping[str, Any]) -> None:
        """Advance the game by one tick (1/20 s).

        Args:
            action: MineStudio's env action. Missing keys are not held. It is not modified.

        Raises:
            InvalidActionError: If the camera is not finite; the game is then unchanged.
        """
        state = self.state
        pitch, yaw = read_camera(action)
        keys = read_keys(action)
        before, state.held_keys = state.held_keys, keys
        slot = read_hotbar(action)
        if slot == state.held_slot:
            slot = NO_SLOT
        else:
            state.held_slot = slot
        pressed = keys & ~before
        if state.player_dead or state.bed is not None:
            keys, pressed, pitch, yaw = 0, 0, 0.0, 0.0
        elif state.screen is not None and not pressed & OPEN_INVENTORY:
            screen_handling.play_screen(state.screen, keys, before, slot, pitch, yaw)
            keys, pressed, pitch, yaw = 0, 0, 0.0, 0.0
        else:
            keys, pressed = self._play_world(keys, pressed, slot)
        self._simulate(keys, pressed, pitch, yaw)
        state.tick_name()
        if state.rules["doDaylightCycle"] == "true":
            state.time += 1
        state.game_time += 1
        if state.player.health <= 0.0 and not state.player_dead:
            state.player_dead = True
            spawning.die(state)
        if state.bed is not None:
            sleeping.tick(state)

    def _play_world(self, keys: int, pressed: int, slot: int) -> tuple[int, int]:
        """Apply a tick's keys to the hotbar and the inventory screen.

        Returns:
            Bits of the held keys, and of the pressed ones, that act on the world.
        """
        state = self.state
        if slot != NO_SLOT:
            state.player.selected = slot
        if pressed & OPEN_INVENTORY:
            if state.screen is None:
                # The camera still turns the head in this tick, but all keys count as released.
                screen_handling.open_inventory(state)
                return 0, 0
            screen_handling.close(state)
            # The attack key must be released first, even if it was pressed in this tick.
            state.dead_keys &= ~pressed | ATTACK
        state.dead_keys &= keys
        return keys & ~state.dead_keys, pressed

    def _simulate(self, keys: int, pressed: int, pitch: float, yaw: float) -> None:
        state = self.state
        player, mobs, items = state.player, state.mobs, state.items
        blocks, players = state.world.blocks, player.records
        events, event_count = state.events, state.event_count
        player.update_equipment()
        drawn = projectiles.ready_bow(state) if player.equipped == projectiles.BOW else 0
        uses = bool(keys & USE)
        # From the last tick's keys, which `tick_player` replaces.
        sneaks = uses and bool(players["keys"][0] & SNEAK)
        tick_player(
            blocks,
            players,
            mobs.records,
            mobs.count,
            state.target,
            keys,
            pitch,
            yaw,
            events,
            event_count,
        )
        if drawn and not players["eating_ticks"][0]:
            projectiles.shoot(state, drawn)
        if state.particles.count:
            state.particles.tick(blocks)
        if pressed & DROP:
            drop_held_item(state)
        if uses and (pressed & USE or not players["use_delay"][0]):
            use_item(state, sneaks)
        x, _, z = player.position.tolist()
        state.world.load_around(x, z)
        state.world.make_ahead(x, z)
        state.herds.follow(state.world, state.mobs)
        if mobs.count:
            mobs.count = tick_mobs(
                blocks, mobs.records, mobs.count, players, state.rng, events, event_count
            )
        conditions = rare_conditions(blocks, player.position, mobs.records, mobs.count)
        if conditions & SNOW_GOLEM:
            golems.tick_snow_golems(state)
        if conditions & MOB_ON_LEAD:
            leads.tick(state)
        if items.count:
            items.count = tick_items(
                blocks, items.records, items.count, players, events, event_count
            )
        if player.effects:
            tick_effects(player, state.hurt_player)
        if state.thrown.count:
            projectiles.tick(state)
        in_lava, mobs_burn = bool(conditions & IN_LAVA), bool(conditions & MOB_BURNS)
        fire.tick(state, in_lava=in_lava, mobs_burn=mobs_burn)
        if conditions & IN_PORTAL:
            fire.log_missing_nether()
        items.displaced = 0
        resolve_all(state)
        if players["hits_block"][0]:
            state.particles.hit(blocks, state.target)
        if state.world.unsupported:
            supports.notice(state)
        for kind, places in state.block_ticks.advance(state.world):
            BLOCK_TICKS[kind](state, places)
        if state.falling.count:
            supports.move_falling(state)
        if state.block_entities:
            state.block_entities.tick(state.world)
        if state.screen is not None:
            screen_handling.close_if_out_of_reach(state, state.screen)
