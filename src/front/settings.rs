//! The settings of the environment, `HOMENODE_*`: read once at start, ignored with `AT_SECURE`.
//!
//! | name | value | default | meaning |
//! |---|---|---|---|
//! | `HOMENODE_CHECK` | `off`, `full` | `off` | `full`: every call checks its block, see [`super::checked`] |
//! | `HOMENODE_FAKE_NODES` | 0 to 64 | 0 | that many invented nodes, CPU k on node k modulo n; 0: the machine's own |
//! | `HOMENODE_RSEQ` | `on`, `off` | `on` | `off`: no per-CPU caches, every call takes the slow path |
//! | `HOMENODE_SLICE` | MiB, a power of two, 32 to 1048576 | 1048576 | address space reserved a node, at most |

use crate::base::config::{NODES_MAX, SLICE_BYTES_MAX, SLICE_BYTES_MIN};
use crate::sys::fatal::say;
use crate::sys::{cpu, file};

/// What the environment asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) fake_nodes: u32,
    pub(super) rseq_off: bool,
    pub(super) check_full: bool,
    pub(super) slice_bytes: usize,
}

const PREFIX: &[u8] = b"HOMENODE_";

impl Settings {
    const DEFAULT: Self =
        Self { fake_nodes: 0, rseq_off: false, check_full: false, slice_bytes: SLICE_BYTES_MAX };

    /// Reads the environment; a wrong value is named once, with what is taken instead.
    pub(super) fn read() -> Self {
        let mut settings = Self::DEFAULT;
        if !cpu::is_secure() {
            file::environment(PREFIX, |entry| settings.take(entry));
        }
        settings
    }

    fn take(&mut self, entry: &[u8]) {
        let Ok(entry) = core::str::from_utf8(entry) else { return };
        let Some((name, value)) = entry.split_once('=') else { return };
        let known = match name {
            "HOMENODE_CHECK" => {
                parse_word(value, ["off", "full"]).map(|full| self.check_full = full)
            }
            "HOMENODE_FAKE_NODES" => {
                parse_range(value, 0, NODES_MAX).map(|nodes| self.fake_nodes = nodes)
            }
            "HOMENODE_RSEQ" => parse_word(value, ["on", "off"]).map(|off| self.rseq_off = off),
            "HOMENODE_SLICE" => parse_mib(value).map(|bytes| self.slice_bytes = bytes),
            _ => {
                // Another version's setting, or another program's (HOMENODE_SO of a test).
                return;
            }
        };
        if known.is_none() {
            say(format_args!(
                "setting {name}={value} is not understood; its default is taken instead"
            ));
        }
    }
}

fn parse_range(value: &str, low: usize, high: usize) -> Option<u32> {
    let number: u32 = value.parse().ok()?;
    (low..=high).contains(&(number as usize)).then_some(number)
}

/// False for the first of two words, true for the second.
fn parse_word(value: &str, words: [&str; 2]) -> Option<bool> {
    words.iter().position(|&word| word == value).map(|place| place == 1)
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
        assert!(taken(b"HOMENODE_RSEQ=off").rseq_off);
        assert!(taken(b"HOMENODE_CHECK=full").check_full);
        assert!(!taken(b"HOMENODE_CHECK=off").check_full);
        assert_eq!(taken(b"HOMENODE_SLICE=1024").slice_bytes, 1 << 30);
    }

    #[test]
    fn wrong_values_leave_the_default() {
        for entry in [
            &b"HOMENODE_FAKE_NODES=65"[..],
            b"HOMENODE_SLICE=3",
            b"HOMENODE_RSEQ=",
            b"HOMENODE_CHECK=on",
            b"HOMENODE_X=1",
        ] {
            assert_eq!(taken(entry), Settings::DEFAULT);
        }
    }
}
