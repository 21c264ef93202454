//! The settings of the environment, `HOMENODE_*`: read once at start, ignored with `AT_SECURE`.
//!
//! | name | value | default | meaning |
//! |---|---|---|---|
//! | `HOMENODE_CHECK` | `off`, `full` | `off` | `full`: every call is checked, see [`super::checked`] |
//! | `HOMENODE_FAKE_NODES` | 0 to 64 | 0 | that many invented nodes, CPU k on node k modulo n; 0: the machine's own |
//! | `HOMENODE_POLICY` | see [`crate::policy`] | `local` | on which nodes memory is |
//! | `HOMENODE_RSEQ` | `on`, `off` | `on` | `off`: no per-CPU caches, every call takes the slow path |
//! | `HOMENODE_SLICE` | MiB, a power of two, 32 to 1048576 | 1048576 | address space reserved a node, at most |
//! | `HOMENODE_STATS` | `brief`, `full` | `brief` | `full`: hits are counted, too: the fast path stays closed, and every call uses the caches by the slow path |

use core::fmt::Display;

use crate::base::config::{NODES_MAX, SLICE_BYTES_MAX, SLICE_BYTES_MIN};
use crate::base::sync::{AtomicU32, Ordering};
use crate::policy;
use crate::sys::fatal::say;
use crate::sys::{cpu, file};

/// What the environment asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) check_full: bool,
    pub(super) fake_nodes: u32,
    pub(super) rseq_off: bool,
    pub(super) slice_bytes: usize,
    pub(super) stats_full: bool,
}

const PREFIX: &[u8] = b"HOMENODE_";

impl Settings {
    const DEFAULT: Self = Self {
        check_full: false,
        fake_nodes: 0,
        rseq_off: false,
        slice_bytes: SLICE_BYTES_MAX,
        stats_full: false,
    };

    /// Reads the environment; a wrong value is named once, with what is taken instead.
    pub(super) fn read() -> Self {
        let mut settings = Self::DEFAULT;
        if !cpu::is_secure() {
            file::environment(PREFIX, |entry| settings.take(entry));
        }
        // A start that failed is tried again, and reads again.
        SAID.store(1, Ordering::Relaxed);
        settings
    }

    fn take(&mut self, entry: &[u8]) {
        let mut parts = entry.splitn(2, |&byte| byte == b'=');
        let Some(Ok(name)) = parts.next().map(core::str::from_utf8) else { return };
        let value = core::str::from_utf8(parts.next().unwrap_or_default()).unwrap_or("\u{fffd}");
        match name {
            "HOMENODE_CHECK" => take_word(name, value, ["off", "full"], &mut self.check_full),
            "HOMENODE_FAKE_NODES" => {
                let nodes = parse_range(value, 0, NODES_MAX);
                self.fake_nodes = understood(name, value, nodes, self.fake_nodes, |nodes| nodes);
            }
            "HOMENODE_POLICY" => take_policy(value),
            "HOMENODE_RSEQ" => take_word(name, value, ["on", "off"], &mut self.rseq_off),
            "HOMENODE_SLICE" => {
                let bytes = parse_mib(value);
                let mib = |bytes| bytes >> 20;
                self.slice_bytes = understood(name, value, bytes, self.slice_bytes, mib);
            }
            "HOMENODE_STATS" => take_word(name, value, ["brief", "full"], &mut self.stats_full),
            // Another version's setting, or another program's (HOMENODE_SO of a test).
            _ => {}
        }
    }
}

/// Notes a policy for the start.
#[inline(never)]
fn take_policy(value: &str) {
    match value.parse() {
        Ok(policy) => policy::ask(&policy),
        Err(error) if SAID.load(Ordering::Relaxed) == 0 => refuse_policy(&value, &error),
        Err(_) => {}
    }
}

/// Says why a policy that was asked for is not taken.
pub(super) fn refuse_policy(asked: &impl Display, why: &impl Display) {
    say(format_args!(
        "setting HOMENODE_POLICY={asked:.24} is not taken: {why}; local is taken instead"
    ));
}

/// 1 once the environment was read.
static SAID: AtomicU32 = AtomicU32::new(0);

/// What was parsed, or else what holds so far, which is said as `shown` puts it.
fn understood<T: Copy, Shown: Display>(
    name: &str,
    value: &str,
    parsed: Option<T>,
    so_far: T,
    shown: impl FnOnce(T) -> Shown,
) -> T {
    if parsed.is_none() && SAID.load(Ordering::Relaxed) == 0 {
        // A long value leaves room for the rest of the line.
        say(format_args!(
            "setting {name}={value:.24} is not understood; {} is taken instead",
            shown(so_far)
        ));
    }
    parsed.unwrap_or(so_far)
}

fn parse_range(value: &str, low: usize, high: usize) -> Option<u32> {
    let number: u32 = value.parse().ok()?;
    (low..=high).contains(&(number as usize)).then_some(number)
}

/// Takes one of two words; `flag` is set by the second.
fn take_word(name: &str, value: &str, words: [&str; 2], flag: &mut bool) {
    let place = words.iter().position(|&word| word == value);
    *flag = understood(name, value, place.map(|place| place == 1), *flag, |flag| {
        words[usize::from(flag)]
    });
}

fn parse_mib(value: &str) -> Option<usize> {
    let mib: usize = value.parse().ok()?;
    let bytes = mib.checked_mul(1 << 20)?;
    (bytes.is_power_of_two() && (SLICE_BYTES_MIN..=SLICE_BYTES_MAX).contains(&bytes))
        .then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::Settings;

    fn taken(entry: &[u8]) -> Settings {
        let mut settings = Settings::DEFAULT;
        settings.take(entry);
        settings
    }

    #[test]
    fn right_values_are_taken() {
        assert_eq!(taken(b"HOMENODE_FAKE_NODES=2").fake_nodes, 2);
        assert!(taken(b"HOMENODE_CHECK=full").check_full);
        assert!(taken(b"HOMENODE_RSEQ=off").rseq_off);
        assert!(taken(b"HOMENODE_STATS=full").stats_full);
        assert_eq!(taken(b"HOMENODE_SLICE=1024").slice_bytes, 1 << 30);
    }

    #[test]
    fn wrong_values_leave_the_default() {
        for entry in [
            &b"HOMENODE_FAKE_NODES=65"[..],
            b"HOMENODE_SLICE=3",
            b"HOMENODE_RSEQ=",
            b"HOMENODE_RSEQ",
            b"HOMENODE_STATS=FULL",
            b"HOMENODE_SLICE=\xff",
            b"HOMENODE_X=1",
        ] {
            assert_eq!(taken(entry), Settings::DEFAULT);
        }
    }
}
