//! Whether the kernel can be trusted: its release, asked only where some releases cannot, and whether there is
//! one below the program at all.
#![allow(unsafe_code, reason = "uname(2), madvise(2)")]

use core::ops::Range;

use super::arch::{Release, UNSOUND_RSEQ, syscall};
use super::fault::{Call, admit, refused};
use super::mem::call;
use crate::base::sync::{AtomicU32, Ordering};

/// The first release with rseq: one that claims to be older hides what it is (`UNAME26`).
const RSEQ_CAME: Release = Release([4, 18, 0]);

/// Bytes of one of uname's six texts; the release is the third.
const TEXT_BYTES: usize = 65;

/// False on a kernel that is known not to abort sections when it should, and on one that does not say
/// which it is; counted as a refusal of rseq then.  Kernel: uname(2).
///
/// Out of line: the start, which goes deep, must not have the texts on its stack.
#[inline(never)]
pub(super) fn rseq_is_sound() -> bool {
    if UNSOUND_RSEQ.is_empty() {
        return true;
    }
    let mut texts = [0_u8; 6 * TEXT_BYTES];
    let address = texts.as_mut_ptr().expose_provenance();
    // SAFETY: the kernel writes six texts of that length.
    let told = unsafe { call(Call::Uname, libc::SYS_uname, [address, 0, 0, 0, 0, 0]) };
    let sound = told.is_ok() && is_sound(&texts[2 * TEXT_BYTES..3 * TEXT_BYTES], &UNSOUND_RSEQ);
    if !sound {
        refused(Call::Rseq);
    }
    sound
}

/// 1 where an emulator of the kernel answers.
static EMULATED: AtomicU32 = AtomicU32::new(0);

/// Asks at start whether this is qemu-user, by an advice that no kernel knows for `page`: it says yes to any.  Not
/// counted, since kernels refuse.  Kernel: madvise(2), `EINVAL`.
pub(super) fn start(page: usize, bytes: usize) {
    const UNKNOWN: usize = 1 << 30;
    if admit(Call::Madvise).is_err() {
        refused(Call::Madvise);
        return;
    }
    // SAFETY: whatever the advice may be to come, the page is one that holds nothing yet.
    let told = unsafe { syscall(libc::SYS_madvise, [page, bytes, UNKNOWN, 0, 0, 0]) };
    EMULATED.store(u32::from(told == 0), Ordering::Relaxed);
}

/// True under qemu-user, where vfork is fork, a page that children shall find wiped is kept (7.2), and the place
/// that pages were moved from is no longer the program's.
pub(super) fn is_emulated() -> bool {
    EMULATED.load(Ordering::Relaxed) != 0
}

/// The pure half of [`rseq_is_sound`].
fn is_sound(text: &[u8], unsound: &Range<Release>) -> bool {
    release(text).is_some_and(|release| release >= RSEQ_CAME && !unsound.contains(&release))
}

/// Reads a release like `7.0.14-arm64`; what is missing of the three numbers is 0.
fn release(text: &[u8]) -> Option<Release> {
    let mut numbers = [0; 3];
    let mut rest = text;
    for number in &mut numbers {
        let digits = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
        let (head, tail) = rest.split_at(digits);
        *number = core::str::from_utf8(head).ok()?.parse().ok()?;
        let Some(after) = tail.strip_prefix(b".") else { break };
        rest = after;
    }
    Some(Release(numbers))
}

#[cfg(test)]
mod tests {
    use super::{Release, is_sound, release};

    fn sound(text: &[u8]) -> bool {
        is_sound(text, &(Release([6, 19, 0])..Release([7, 0, 14])))
    }

    #[test]
    fn a_release_is_three_numbers() {
        assert_eq!(release(b"6.18.44-fc-v669\0"), Some(Release([6, 18, 44])));
        assert_eq!(release(b"6.19-rc1\0"), Some(Release([6, 19, 0])));
        assert_eq!(release(b"7.0.14+deb14-arm64"), Some(Release([7, 0, 14])));
        assert_eq!(release(b"Linux\0"), None);
        assert_eq!(release(b"6.\0"), None);
    }

    #[test]
    fn releases_between_the_fault_and_its_mending_are_refused() {
        for text in [&b"6.19.0-rc1\0"[..], b"6.19.14\0", b"7.0.0-14-generic\0", b"7.0.13\0"] {
            assert!(!sound(text));
        }
        for text in [&b"6.18.44\0"[..], b"5.10.0-28-arm64\0", b"7.0.14\0", b"7.1.0\0"] {
            assert!(sound(text));
        }
    }

    #[test]
    fn a_kernel_that_hides_its_release_is_refused() {
        assert!(!sound(b"2.6.79\0"));
        assert!(!sound(b"\0"));
    }
}
