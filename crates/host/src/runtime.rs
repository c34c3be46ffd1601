//! The threads and the memory of a host.

use std::io;
use tokio::runtime::{Builder, Runtime};

/// Enough to keep one call from holding up another, and few enough to stay small.
const WORKERS: usize = 2;

/// Made before anything else: the memory's settings hold for what is taken after them.
pub fn runtime() -> io::Result<Runtime> {
    memory::give_back();
    Builder::new_multi_thread().worker_threads(WORKERS).thread_name("agentbox").enable_all().build()
}

/// A host idles most of its life. As it comes, the C library keeps a store of memory for each thread and
/// learns from one large buffer to keep all later ones: a host that has made a few boxes then holds ten
/// megabytes it has no use for.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod memory {
    use nix::libc::{M_ARENA_MAX, M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, c_int, mallopt};

    const STORES: c_int = 2;
    /// Buffers from here on go back to the system at once.
    const LARGE: c_int = 128 * 1024;
    /// So much may lie free at the end of a store.
    const SPARE: c_int = 128 * 1024;

    #[allow(
        unsafe_code,
        reason = "mallopt; it takes two numbers and runs before there are threads"
    )]
    pub fn give_back() {
        for (what, value) in
            [(M_ARENA_MAX, STORES), (M_MMAP_THRESHOLD, LARGE), (M_TRIM_THRESHOLD, SPARE)]
        {
            // One that is refused costs memory and nothing else.
            let _ = unsafe { mallopt(what, value) };
        }
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod memory {
    pub fn give_back() {}
}
