//! Files of /proc and /sys, read into the caller's buffer; text written to a descriptor.
#![allow(unsafe_code, reason = "open, read, getdents, write on buffers of the caller")]

use core::fmt;

use super::arch::environ;
use super::errno::Errno;
use super::fault::Call;
use super::mem::{self, call};

/// An open file; closed when dropped.
#[derive(Debug)]
struct File(usize);

impl File {
    fn open(path: &[u8]) -> Result<Self, Errno> {
        debug_assert_eq!(path.last(), Some(&0), "a path ends in a null byte");
        let at = libc::AT_FDCWD.cast_unsigned() as usize;
        let flags = (libc::O_RDONLY | libc::O_CLOEXEC).cast_unsigned() as usize;
        // SAFETY: the path is a null-terminated string that outlives the call.
        unsafe {
            call(
                Call::Open,
                libc::SYS_openat,
                [at, path.as_ptr().expose_provenance(), flags, 0, 0, 0],
            )
        }
        .map(Self)
    }

    fn read(&self, number: i64, kind: Call, buffer: &mut [u8]) -> Result<usize, Errno> {
        let address = buffer.as_mut_ptr().expose_provenance();
        // SAFETY: the buffer is writable for its length.
        unsafe { call(kind, number, [self.0, address, buffer.len(), 0, 0, 0]) }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // Refused, it stays open or is closed all the same (close(2), NOTES), and a second try could
        // close another thread's.
        // SAFETY: the descriptor is this value's own.
        let _ = unsafe { call(Call::Close, libc::SYS_close, [self.0, 0, 0, 0, 0, 0]) };
    }
}

/// Reads a whole file, or as much as fits; `path` ends in a null byte.
pub(crate) fn read<'a>(path: &[u8], buffer: &'a mut [u8]) -> Result<&'a [u8], Errno> {
    let file = File::open(path)?;
    let mut len = 0;
    while len < buffer.len() {
        let got =
            file.read(libc::SYS_read, Call::Read, buffer.get_mut(len..).unwrap_or_default())?;
        if got == 0 {
            break;
        }
        len += got;
    }
    Ok(buffer.get(..len).unwrap_or_default())
}

/// Calls `entry` with the name of each entry of a directory; stops when it returns false.
/// Kernel: getdents64(2).
pub(crate) fn list(
    path: &[u8],
    buffer: &mut [u8],
    mut entry: impl FnMut(&[u8]) -> bool,
) -> Result<(), Errno> {
    const NAME_OFFSET: usize = 19;
    let directory = File::open(path)?;
    loop {
        let got = directory.read(libc::SYS_getdents64, Call::Getdents, buffer)?;
        let mut rest = buffer.get(..got).unwrap_or_default();
        if rest.is_empty() {
            return Ok(());
        }
        while let Some(&[low, high]) = rest.get(16..18) {
            let length = usize::from(u16::from_ne_bytes([low, high])).max(NAME_OFFSET);
            let name = rest.get(NAME_OFFSET..length).unwrap_or_default();
            let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
            if !entry(name.get(..end).unwrap_or_default()) {
                return Ok(());
            }
            rest = rest.get(length..).unwrap_or_default();
        }
    }
}

/// Bytes of /proc/self/environ that are looked at where libc's `environ` is not set yet.
const ENVIRON_BYTES: usize = 128 << 10;

/// Calls `variable` with each `NAME=value` of the environment that starts with `prefix`: libc's
/// `environ`, or one raw read of /proc/self/environ while libc has not set it.
pub(crate) fn environment(prefix: &[u8], mut variable: impl FnMut(&[u8])) {
    let mut next = environ();
    if next.is_null() {
        let Ok(scratch) = mem::map(ENVIRON_BYTES) else { return };
        let first = core::ptr::with_exposed_provenance_mut(scratch);
        // SAFETY: the map is fresh, zeroed, and this function's own.
        let buffer = unsafe { core::slice::from_raw_parts_mut(first, ENVIRON_BYTES) };
        let text = read(b"/proc/self/environ\0", buffer).unwrap_or_default();
        for entry in text.split(|&byte| byte == 0).filter(|entry| entry.starts_with(prefix)) {
            variable(entry);
        }
        mem::release(scratch, ENVIRON_BYTES);
        return;
    }
    loop {
        // SAFETY: libc's vector of pointers ends in null, and `next` has not passed it.
        let entry = unsafe { *next };
        if entry.is_null() {
            return;
        }
        // SAFETY: each entry is a null-terminated string.
        let entry = unsafe { core::ffi::CStr::from_ptr(entry.cast()) }.to_bytes();
        if entry.starts_with(prefix) {
            variable(entry);
        }
        // SAFETY: the vector goes on until its null.
        next = unsafe { next.add(1) };
    }
}

/// A file descriptor as a target of `write!`; short writes are repeated.
#[derive(Debug)]
pub(crate) struct Fd(pub(crate) i32);

impl fmt::Write for Fd {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let fd = usize::try_from(self.0).map_err(|_| fmt::Error)?;
            let address = rest.as_ptr().expose_provenance();
            // SAFETY: the text is readable for its length.
            let result =
                unsafe { call(Call::Write, libc::SYS_write, [fd, address, rest.len(), 0, 0, 0]) };
            let written = match result {
                Ok(written) => written,
                Err(Errno(libc::EINTR)) => 0,
                Err(_) => return Err(fmt::Error),
            };
            rest = rest.get(written..).unwrap_or_default();
        }
        Ok(())
    }
}

/// A buffer as a target of `write!`: counts all, keeps what fits.
#[derive(Debug)]
pub(crate) struct Text<'a> {
    buffer: &'a mut [u8],
    len: usize,
}

impl<'a> Text<'a> {
    pub(crate) fn new(buffer: &'a mut [u8]) -> Self {
        Self { buffer, len: 0 }
    }

    /// Bytes written so far, those that did not fit included.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// What was kept: nothing where a character is cut in two.
    pub(crate) fn text(&self) -> &str {
        let kept = self.buffer.get(..self.len).unwrap_or(self.buffer);
        core::str::from_utf8(kept).unwrap_or_default()
    }
}

impl fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for &byte in text.as_bytes() {
            if let Some(slot) = self.buffer.get_mut(self.len) {
                *slot = byte;
            }
            self.len += 1;
        }
        Ok(())
    }
}
