//! The kernel's error numbers as a type.

/// An error number of Linux; never zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Errno(pub(crate) i32);

impl Errno {
    /// Out of memory, or over a limit.
    pub(crate) const NOMEM: Self = Self(libc::ENOMEM);
    /// Over a limit for now.
    pub(crate) const AGAIN: Self = Self(libc::EAGAIN);
    /// Not permitted, or not registered for.
    pub(crate) const PERM: Self = Self(libc::EPERM);

    /// Reads a raw system call's result.
    pub(crate) fn check(result: isize) -> Result<usize, Self> {
        match usize::try_from(result) {
            Ok(value) => Ok(value),
            Err(_) => Err(Self(i32::try_from(-result).unwrap_or(libc::EINVAL))),
        }
    }
}
