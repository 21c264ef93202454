//! Whether a program gains rights when it starts.  The loader then takes nothing from the environment, and
//! preloads nothing.  Kernel: `security/commoncap.c` `cap_bprm_creds_from_file`, v6.12; ld.so(8), "secure-execution mode".

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Mode, StatVfsMountFlags};
use rustix::{fs as files, process, thread};

/// How a program gains rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gain {
    Setuid,
    Setgid,
    Capabilities,
}

/// What `program` would gain, started by this process.
pub(crate) fn gained(program: &Path) -> Option<Gain> {
    let file = fs::metadata(program).ok()?;
    let ignores =
        files::statvfs(program).is_ok_and(|of| of.f_flag.contains(StatVfsMountFlags::NOSUID));
    if ignores || thread::no_new_privs().unwrap_or(false) {
        return None;
    }
    let mode = Mode::from_raw_mode(file.mode());
    let user = if mode.contains(Mode::SUID) { file.uid() } else { process::geteuid().as_raw() };
    // Without the group's right to run it, the bit means something else.
    let is_setgid = mode.contains(Mode::SGID | Mode::XGRP);
    let group = if is_setgid { file.gid() } else { process::getegid().as_raw() };
    if user != process::getuid().as_raw() {
        return Some(Gain::Setuid);
    }
    if group != process::getgid().as_raw() {
        return Some(Gain::Setgid);
    }
    // Root has them all.
    let mut none: [u8; 0] = [];
    let has_some = files::getxattr(program, "security.capability", &mut none[..]).is_ok();
    (has_some && !process::getuid().is_root()).then_some(Gain::Capabilities)
}
