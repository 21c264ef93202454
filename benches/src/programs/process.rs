//! The kernel's account of one run.
#![allow(unsafe_code, reason = "std waits for a child without the kernel's account of it")]

use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};

/// What a process used that has ended, with the children that it waited for.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    /// How it ended.
    pub status: ExitStatus,
    /// Seconds of CPU time, the program's own and the kernel's.
    pub cpu: f64,
    /// MiB resident at most: of the largest process. Never less than this program's own few MiB,
    /// which a child has until it starts another program.
    pub peak: f64,
    /// How often it lost its CPU.
    pub involuntary: u64,
}

/// Waits for `child` to end.
///
/// # Errors
/// When the kernel knows no such child.
pub fn wait(child: Child) -> std::io::Result<Usage> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    let pid = child.id().cast_signed();
    // SAFETY: wait4(2) writes to two locals of the types that it asks for and keeps neither.
    let ended = unsafe { libc::wait4(pid, &raw mut status, 0, usage.as_mut_ptr()) };
    if ended != pid {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: all zeroes are a value of this struct of integers, whatever wait4 has written of it.
    let usage = unsafe { usage.assume_init() };
    Ok(Usage::new(ExitStatus::from_raw(status), &usage))
}

impl Usage {
    /// Kernel: getrusage(2): times in seconds and microseconds, `ru_maxrss` in KiB.
    fn new(status: ExitStatus, usage: &libc::rusage) -> Self {
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        Self {
            status,
            cpu: seconds(usage.ru_utime) + seconds(usage.ru_stime),
            peak: usage.ru_maxrss as f64 / 1024.0,
            involuntary: u64::try_from(usage.ru_nivcsw).unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn both_times_and_the_peak_are_read_in_their_units() {
        // SAFETY: all zeroes are a value of this struct of integers.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        usage.ru_utime = libc::timeval { tv_sec: 1, tv_usec: 250_000 };
        usage.ru_stime = libc::timeval { tv_sec: 0, tv_usec: 500_000 };
        usage.ru_maxrss = 3 * 1024;
        usage.ru_nivcsw = 7;
        let usage = Usage::new(ExitStatus::from_raw(0), &usage);
        assert_eq!((usage.cpu, usage.peak, usage.involuntary), (1.75, 3.0, 7));
    }

    #[test]
    fn a_child_that_ended_badly_is_told_apart() {
        let usage = |command: &str| {
            wait(Command::new("/bin/sh").args(["-c", command]).spawn().unwrap()).unwrap()
        };
        assert!(usage("exit 0").status.success());
        assert_eq!(usage("exit 3").status.code(), Some(3));
    }

    #[test]
    fn the_peak_holds_what_a_child_of_the_child_touched() {
        let shell = |command: &str| {
            wait(Command::new("/bin/sh").args(["-c", command]).spawn().unwrap()).unwrap()
        };
        let fill = "head -c 100000000 /dev/zero | tail -c 60000000 >/dev/null; :";
        assert!(shell(fill).peak > shell(":").peak + 50.0);
    }
}
