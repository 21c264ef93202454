//! Blocks that grow: room behind them, and growth in place.
//!
//! Address space is plentiful, and what was never touched costs nothing.  So a block that has grown gets
//! some free compounds behind it, which are kept for it: they serve others only when there is nothing else.
//! It moves to a new place once while it becomes eight times as long.

use super::extent::is_locked;
use super::slice::{Exhausted, Slice, Taken};
use crate::base::config::{GROWTH_ROOM, GROWTH_ROOM_FRACTION, GROWTH_ROOM_MAX};
use crate::base::ids::CompoundId;

impl Slice {
    /// As [`Slice::take`], for a block that is growing: with room behind it where there is some.
    pub(crate) fn take_growing(&self, count: u32, align: u32) -> Result<Taken, Exhausted> {
        if is_locked() {
            // All that is made writable is resident at once.
            return self.take(count, align);
        }
        let wanted = count.saturating_mul(GROWTH_ROOM).min(count.max(GROWTH_ROOM_MAX));
        let room = wanted.min(self.end().saturating_sub(self.frontier()) / GROWTH_ROOM_FRACTION);
        self.take_roomy(count, align, room).or_else(|_| self.take(count, align))
    }

    /// Hands out the `count` compounds after a block that ends at `at`, if they are free or fresh.
    pub(crate) fn take_at(&self, at: CompoundId, count: u32) -> bool {
        let _held = self.enter();
        let Some(end) = at.0.checked_add(count) else { return false };
        let free = self.free_after(at.0).min(count);
        let rest = at.0 + free;
        if free < count {
            if rest == self.frontier() && end >= self.end() {
                self.lengthen(end);
            }
            let extends = rest == self.frontier()
                && self.commit(end).is_ok()
                && self.frontier.extend(rest, end);
            if !extends {
                return false;
            }
        }
        if free > 0 {
            self.mark_taken(at.0, free);
        }
        true
    }
}
