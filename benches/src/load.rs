//! What else the machine did during a run: a number measured beside foreign load is worth less.

use serde::Serialize;
use std::fs::read_to_string;

/// A reading of the machine's load before a run.
#[derive(Debug)]
pub struct Before {
    loadavg: String,
    ticks: Ticks,
}

/// The load during a run.
#[derive(Debug, Clone, Serialize)]
pub struct Load {
    /// The three averages before the run.
    pub loadavg_before: String,
    /// The three averages after it.
    pub loadavg_after: String,
    /// Per cent of all CPU time that the hypervisor gave to others.
    pub steal_percent: f64,
    /// Per cent of all CPU time that was not idle: the run itself fills one CPU.
    pub busy_percent: f64,
    /// How often the measured threads lost their CPU.
    pub involuntary_switches: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Ticks {
    all: f64,
    idle: f64,
    steal: f64,
}

impl Before {
    /// Reads the load now.
    #[must_use]
    pub fn now() -> Self {
        Self { loadavg: loadavg(), ticks: ticks() }
    }

    /// The load since then.
    #[must_use]
    pub fn until_now(self, involuntary_switches: u64) -> Load {
        let (was, is) = (self.ticks, ticks());
        let percent = |part: f64| 100.0 * part / (is.all - was.all).max(1.0);
        let idle = is.idle - was.idle;
        Load {
            loadavg_before: self.loadavg,
            loadavg_after: loadavg(),
            steal_percent: percent(is.steal - was.steal),
            busy_percent: percent(is.all - was.all - idle),
            involuntary_switches,
        }
    }
}

impl Load {
    /// One line for the end of a table.
    #[must_use]
    pub fn line(&self) -> String {
        format!(
            "foreign load: loadavg {} -> {}, steal {:.1} %, busy {:.0} % of all CPUs, \
             {} involuntary switches",
            self.loadavg_before,
            self.loadavg_after,
            self.steal_percent,
            self.busy_percent,
            self.involuntary_switches
        )
    }
}

fn loadavg() -> String {
    let text = read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

fn ticks() -> Ticks {
    parse_stat(&read_to_string("/proc/stat").unwrap_or_default())
}

/// The first line of `/proc/stat`: user nice system idle iowait irq softirq steal; guest time is
/// part of user time. proc(5).
fn parse_stat(text: &str) -> Ticks {
    let first = text.lines().next().unwrap_or_default();
    let fields: Vec<f64> = first.split_whitespace().filter_map(|w| w.parse().ok()).collect();
    let field = |i: usize| fields.get(i).copied().unwrap_or(0.0);
    Ticks { all: fields.iter().take(8).sum(), idle: field(3) + field(4), steal: field(7) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guest_time_is_not_counted_twice() {
        let ticks = parse_stat("cpu  10 1 5 100 4 0 1 9 7 7\ncpu0 1 1 1 1\n");
        assert_eq!(ticks, Ticks { all: 130.0, idle: 104.0, steal: 9.0 });
    }

    #[test]
    fn a_machine_without_proc_has_no_load() {
        assert_eq!(parse_stat(""), Ticks::default());
    }
}
