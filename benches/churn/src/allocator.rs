//! The global allocator that a feature chooses, and its name.

#[cfg(feature = "glibc")]
mod chosen {
    pub const NAME: &str = "glibc";
    #[global_allocator]
    static GLOBAL: std::alloc::System = std::alloc::System;
}

#[cfg(feature = "homenode")]
mod chosen {
    pub const NAME: &str = "homenode";
    #[global_allocator]
    static GLOBAL: homenode::HomeNode = homenode::HomeNode::new();
}

#[cfg(feature = "jemalloc")]
mod chosen {
    pub const NAME: &str = "jemalloc";
    #[global_allocator]
    static GLOBAL: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;
}

#[cfg(feature = "mimalloc2")]
mod chosen {
    pub const NAME: &str = "mimalloc2";
    #[global_allocator]
    static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;
}

#[cfg(feature = "mimalloc3")]
mod chosen {
    pub const NAME: &str = "mimalloc3";
    #[global_allocator]
    static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;
}

#[cfg(feature = "numalloc")]
mod chosen {
    pub const NAME: &str = "numalloc";
    #[global_allocator]
    static GLOBAL: numalloc::NumaAlloc = numalloc::NumaAlloc::new();
}

#[cfg(feature = "rpmalloc")]
mod chosen {
    pub const NAME: &str = "rpmalloc";
    #[global_allocator]
    static GLOBAL: rpmalloc::RpMalloc = rpmalloc::RpMalloc;
}

#[cfg(feature = "snmalloc")]
mod chosen {
    pub const NAME: &str = "snmalloc";
    #[global_allocator]
    static GLOBAL: snmalloc_rs::SnMalloc = snmalloc_rs::SnMalloc;
}

pub use chosen::NAME;
