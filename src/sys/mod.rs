//! sys: the only layer that knows the kernel and the processor.

pub(crate) mod arch;
pub(crate) mod cpu;
pub(crate) mod errno;
pub(crate) mod fatal;
pub(crate) mod fault;
pub(crate) mod file;
mod generation;
mod kernel;
pub(crate) mod lock;
pub(crate) mod mem;
pub(crate) mod process;
pub(crate) mod rseq;
#[cfg(feature = "stay-loaded")]
mod stay;
mod thread_exit;
mod wait;
