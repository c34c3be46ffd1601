//! The threads and the memory of a host.

use std::io;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Enough to keep one call from holding up another, and few enough to stay small.
const WORKERS: usize = 2;
/// When all that is needed only to come up has been let go.
const UP: Duration = Duration::from_secs(2);

/// Made before anything else: the memory's settings hold for what is taken after them.
pub fn runtime() -> io::Result<Runtime> {
    memory::give_back();
    let mut builder = Builder::new_multi_thread();
    let runtime = builder.worker_threads(WORKERS).thread_name("agentbox").enable_all().build()?;
    runtime.spawn(async {
        tokio::time::sleep(UP).await;
        memory::give_back_now();
    });
    Ok(runtime)
}

/// A host idles most of its life. As it comes, the C library keeps a store of memory for each thread and
/// learns from one large buffer to keep all later ones: a host that has made a few boxes then holds ten
/// megabytes it has no use for.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod memory {
    use nix::libc::{M_ARENA_MAX, M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, c_int, malloc_trim, mallopt};

    const STORES: c_int = 2;
    /// Buffers from here on go back to the system at once. Pieces of a copy are smaller: asking for each
    /// anew takes longer than copying it.
    const LARGE: c_int = 1024 * 1024;
    /// So much may lie free at the end of a store.
    const SPARE: c_int = 512 * 1024;

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

    #[allow(unsafe_code, reason = "malloc_trim; it takes a number and may be called at any time")]
    pub fn give_back_now() {
        unsafe { malloc_trim(0) };
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod memory {
    pub fn give_back() {}
    pub fn give_back_now() {}
}
