//! Exit codes an in-box command can end with. The table in `docs/reference.md` says the same.

/// The work was done.
pub const OK: i32 = 0;
/// Something failed that has no code of its own.
pub const FAILURE: i32 = 1;
/// A shim refused before anything left the box.
pub const SHIM_REFUSED: i32 = 2;
/// The host program has no login.
pub const NOT_LOGGED_IN: i32 = 4;
/// A person, a policy or the clock said no.
pub const DENIED: i32 = 10;
/// A checkout would touch uncommitted work, or a branch a box is on.
pub const CHECKOUT_UNSAFE: i32 = 12;
/// Checking out pull requests on the host is switched off.
pub const CHECKOUT_OFF: i32 = 13;
/// The call cannot be addressed: no such worktree, malformed parameters.
pub const UNADDRESSABLE: i32 = 64;
/// The call is well formed but a rule forbids it.
pub const REFUSED: i32 = 65;
/// A connector wanted to set a variable outside its own namespace.
pub const BAD_ENVIRONMENT: i32 = 78;
/// A host command ran into its time limit.
pub const TIMED_OUT: i32 = 124;
/// The relay could not be reached, or went away before it answered.
pub const UNREACHABLE: i32 = 126;
/// A program is missing on the host.
pub const NO_PROGRAM: i32 = 127;
