//! Exit codes an in-box command can end with. The table in `docs/reference.md` says the same.

/// The work was done.
pub const OK: i32 = 0;
/// Something failed that has no code of its own.
pub const FAILURE: i32 = 1;
/// A shim refused before anything left the box.
pub const SHIM_REFUSED: i32 = 2;
/// A person, a policy or the clock said no.
pub const DENIED: i32 = 10;
/// The call cannot be addressed: no such worktree, malformed parameters.
pub const UNADDRESSABLE: i32 = 64;
/// The call is well formed but a rule forbids it.
pub const REFUSED: i32 = 65;
/// A host command ran into its time limit.
pub const TIMED_OUT: i32 = 124;
/// The relay could not be reached, or went away before it answered.
pub const UNREACHABLE: i32 = 126;
/// A program is missing on the host.
pub const NO_PROGRAM: i32 = 127;
